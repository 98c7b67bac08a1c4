import { createRoot } from 'react-dom/client'
import { SignIn } from './sign-in.tsx'

const root = document.querySelector('#root')
if (root === null) throw new Error('the page has no #root')
createRoot(root).render(<SignIn />)
