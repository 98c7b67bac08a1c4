export { GET, OPTIONS } from '../../api/auth/[...path]/route'
