import { typedCode } from '../../shared/typed-code.ts'
import { part } from '../client/custom-element.ts'

/** Number of digits of a return code. */
const length = 6

/** Options of {@link DigitField}. */
export interface DigitFieldOptions {
  /** Id of the element that says what is wrong with the code. */
  readonly describedBy: string
  /** Called with the code at its last digit, and each time that it is submitted. */
  readonly onCode: (code: string) => void
}

/**
 * A field for a return code: one input, which people paste into and browsers fill in, below six boxes that show its
 * digits.
 */
export class DigitField {
  readonly form = part('form', 'return-code')
  readonly label = part('label', 'return-code-label')
  readonly #field = part('input', 'return-code-field')
  readonly #boxes = Array.from({ length }, () => part('span', 'return-code-digit'))
  readonly #onCode: (code: string) => void

  constructor({ describedBy, onCode }: DigitFieldOptions) {
    this.#onCode = onCode
    const field = this.#field
    this.form.id = 'form'
    field.id = 'return-code'
    field.inputMode = 'numeric'
    field.autocomplete = 'one-time-code'
    field.setAttribute('aria-describedby', describedBy)
    this.label.htmlFor = field.id
    const boxes = document.createElement('div')
    boxes.className = 'digits'
    boxes.translate = false
    for (const box of this.#boxes) box.ariaHidden = 'true'
    boxes.append(field, ...this.#boxes)
    this.form.append(this.label, boxes)
    this.form.addEventListener('submit', (event) => {
      event.preventDefault()
      this.#submit()
    })
    field.addEventListener('input', () => {
      // Codes are pasted with words around them, spoken in groups, and typed in the digits of the keyboard's script.
      field.value = typedCode(field.value).replace(/\D/g, '').slice(0, length)
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
    if (value.length === length && !readOnly) this.#onCode(value)
  }

  #show(): void {
    const { value } = this.#field
    for (const [index, box] of this.#boxes.entries()) {
      box.textContent = value[index] ?? ''
      box.classList.toggle('next', index === Math.min(value.length, length - 1))
    }
  }
}
