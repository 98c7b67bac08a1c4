import { serve } from '../../../../lib/countersign'

export { serve as GET, serve as HEAD, serve as OPTIONS, serve as POST }
