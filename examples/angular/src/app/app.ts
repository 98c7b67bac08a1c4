// In Angular's templates, a colon in an event's name stands for `window:` and the like, so the component listens by
// itself. The event bubbles.
import { Component, CUSTOM_ELEMENTS_SCHEMA, ElementRef, inject, signal } from '@angular/core'
import { createCountersignClient } from 'countersign/client'
import 'countersign/client/element'

@Component({
  selector: 'app-root',
  schemas: [CUSTOM_ELEMENTS_SCHEMA],
  template: `
    @if (address()) {
      <p>Signed in as {{ address() }}</p>
    } @else if (address() === '') {
      <countersign-sign-in [attr.base-url]="baseUrl" />
    }
  `,
})
export class App {
  readonly baseUrl = 'https://auth.shop.example'
  readonly address = signal<string | undefined>(undefined)

  constructor() {
    const { baseUrl, address } = this
    const signedIn = ({ detail }: CustomEvent) => address.set(detail.session.address)
    inject(ElementRef).nativeElement.addEventListener('countersign:signed-in', signedIn)
    createCountersignClient({ baseUrl })
      .getCurrentSession()
      .then((session) => address.set(session?.address ?? ''))
  }
}
