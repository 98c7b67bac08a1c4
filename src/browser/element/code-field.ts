import { typedCode } from '../../shared/typed-code.ts'
import { part } from '../client/custom-element.ts'

/** Options of {@link CodeField}. */
interface CodeFieldOptions {
  /** Id of the element that says what is wrong with the code. */
  readonly describedBy: string
  /** Whether it takes the eight letters that a device shows, in place of a return code's six digits. */
  readonly isOfDevice?: boolean
  /** Called with the code at its last character, and each time that it is submitted. */
  readonly onCode: (code: string) => void
}

/**
 * A field for a code: one input, which people paste into and browsers fill in, below boxes that show its characters.
 */
export class CodeField {
  readonly form = part('form', 'return-code')
  readonly label = part('label', 'return-code-label')
  /** What is wrong with the last return code. The page of the device has a place of its own for that. */
  readonly problem = part('p', 'return-code-error')
  readonly #field = part('input', 'return-code-field')
  readonly #boxes: readonly HTMLElement[]
  readonly #onCode: (code: string) => void

  constructor({ describedBy, isOfDevice = false, onCode }: CodeFieldOptions) {
    const length = isOfDevice ? 8 : 6
    this.#boxes = Array.from({ length }, () => part('span', 'return-code-digit'))
    this.#onCode = onCode
    const field = this.#field
    this.form.id = 'form'
    field.id = 'return-code'
    field.inputMode = isOfDevice ? 'text' : 'numeric'
    field.autocomplete = isOfDevice ? 'off' : 'one-time-code'
    field.autocapitalize = 'characters'
    field.spellcheck = false
    this.problem.id = 'problem'
    this.problem.setAttribute('role', 'status')
    field.setAttribute('aria-describedby', isOfDevice ? describedBy : `${describedBy} ${this.problem.id}`)
    this.label.htmlFor = field.id
    const boxes = document.createElement('div')
    boxes.className = 'digits'
    boxes.translate = false
    for (const box of this.#boxes) box.ariaHidden = 'true'
    boxes.append(field, ...this.#boxes)
    this.form.append(this.label, boxes, ...(isOfDevice ? [] : [this.problem]))
    this.form.addEventListener('submit', (event) => {
      event.preventDefault()
      this.#submit()
    })
    field.addEventListener('input', () => {
      // Codes are pasted with words around them, spoken in groups, and typed in the digits of the keyboard's script.
      const typed = typedCode(field.value).toUpperCase()
      field.value = (isOfDevice ? typed : typed.replace(/\D/g, '')).slice(0, length)
      field.ariaInvalid = null
      this.#show()
      this.#submit()
    })
    // The boxes show no other place to type at.
    field.addEventListener('click', () => field.setSelectionRange(length, length))
  }

  set isReadOnly(isReadOnly: boolean) {
    this.#field.readOnly = isReadOnly
  }

  /** Removes the digits. `isWrong` says whether they were wrong. */
  empty(isWrong: boolean): void {
    this.#field.value = ''
    this.#field.ariaInvalid = isWrong ? 'true' : null
    this.#show()
  }

  focus(): void {
    this.#field.focus()
  }

  #submit(): void {
    const { value, readOnly } = this.#field
    if (value.length === this.#boxes.length && !readOnly) this.#onCode(value)
  }

  #show(): void {
    const { value } = this.#field
    for (const [index, box] of this.#boxes.entries()) {
      box.textContent = value[index] ?? ''
      box.classList.toggle('next', index === Math.min(value.length, this.#boxes.length - 1))
    }
  }
}
