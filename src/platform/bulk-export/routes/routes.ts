import type { Route } from '../../http/route.ts'
import type { ExportContext } from '../context.ts'
import { destinationRoutes } from './destinations.ts'
import { exportRoutes } from './exports.ts'

/** Everything below `/api/v1/bulk-exports` (specification 4.3). Fixed paths come before those with an id. */
export function bulkExportRoutes(context: ExportContext): Route[] {
  return [...destinationRoutes(context), ...exportRoutes(context)]
}
