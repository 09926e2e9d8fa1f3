/** `npm run dashboards:generate`: writes the dashboards; a test compares. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboards, dashboardText } from './index.ts';

for (const [file, build] of Object.entries(dashboards)) writeFileSync(join(import.meta.dirname, '../dashboards', file), dashboardText(build()));
