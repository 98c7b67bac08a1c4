import type {
  ProofArtifact,
  ProofArtifactFields,
  ProofErrorReason,
  ProofOptions,
} from '../../src/integrations/proof/index.ts'
import vectors from '../vectors/proofs.json' with { type: 'json' }

/** A proof artifact, with what it has to agree with. */
export interface ProofCase {
  readonly name: string
  readonly artifact: ProofArtifactFields
  readonly options: ProofOptions
}

/** What every case of the vectors has to agree with. */
export const baseOptions = vectors.options as ProofOptions

/** Artifacts that hold, with their owners. */
export const accepted: readonly (ProofCase & { readonly owner: NonNullable<ProofOptions['owner']> })[] =
  vectors.accepted.map(({ name, artifact, owner, options }) => ({
    name,
    artifact,
    owner,
    options: { ...baseOptions, ...(options as Partial<ProofOptions>), owner },
  }))

/** Artifacts that do not. */
export const refused: readonly (ProofCase & { readonly reason: ProofErrorReason })[] = vectors.refused.map(
  ({ name, reason, artifact, options }) => ({
    name,
    reason: reason as ProofErrorReason,
    artifact,
    options: { ...baseOptions, ...(options as Partial<ProofOptions>) },
  }),
)

/** An artifact with the names of clients and of the REST interface. */
export function inCamelCase(artifact: ProofArtifactFields): ProofArtifact {
  const names = Object.entries(artifact).map(([name, value]) => [
    name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ])
  return Object.fromEntries(names)
}
