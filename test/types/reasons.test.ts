import { expectTypeOf, test } from 'vitest'
import type * as proto from '../../gen/server/countersign/v1/error_reason_pb.ts'
import type { ErrorReason, ReasonsOf } from '../../src/shared/errors.ts'

test('every reason of the protos has a row, and there are no others', () => {
  expectTypeOf<ErrorReason>().toEqualTypeOf<Exclude<keyof typeof proto.ErrorReason, 'UNSPECIFIED'>>()
})

test('ReasonsOf names the reasons whose rows say so', () => {
  expectTypeOf<ReasonsOf<'same call'>>().toEqualTypeOf<'INTERNAL'>()
  expectTypeOf<ReasonsOf<'after a time'>>().toEqualTypeOf<
    'RATE_LIMITED' | 'STORE_UNAVAILABLE' | 'SERVER_BUSY' | 'HOST_UNAVAILABLE'
  >()
})
