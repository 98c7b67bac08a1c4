export { GET, HEAD } from '../../api/auth/[...path]/route'
