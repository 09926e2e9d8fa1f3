/** The dashboards by the name of their file. */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { durabilityDashboard } from './durability.ts';
import { fleetDashboard } from './fleet.ts';
import { modelsDashboard } from './models.ts';
import { toolsDashboard } from './tools.ts';

export const dashboards: Readonly<Record<string, () => Dashboard>> = {
  'fleet.json': fleetDashboard, 'models.json': modelsDashboard, 'tools.json': toolsDashboard, 'durability.json': durabilityDashboard,
};

/** As it stands in the file. */
export function dashboardText(dashboard: Dashboard): string {
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}
