/** What all our dashboards have: a data source and jobs to choose, links to each other. */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  DashboardBuilder, DashboardCursorSync, DashboardLinkBuilder, DashboardLinkType, DatasourceVariableBuilder, QueryVariableBuilder, RowBuilder, VariableRefresh, VariableSort, type Dashboard, type Panel,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { datasource } from './panels.ts';

export interface Row { readonly title: string; readonly panels: readonly Builder<Panel>[] }

export interface Described {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  /** Labels to choose by, each of one metric's. */
  readonly variables: readonly (readonly [label: string, metric: string])[];
  readonly rows: readonly Row[];
}

const all = { selected: true, text: 'All', value: '$__all' };

function variable(label: string, metric: string): QueryVariableBuilder {
  return new QueryVariableBuilder(label).label(label).datasource(datasource).query({ qryType: 1, query: `label_values(${metric}, ${label})`, refId: label })
    .definition(`label_values(${metric}, ${label})`).refresh(VariableRefresh.OnTimeRangeChanged).sort(VariableSort.AlphabeticalAsc).multi(true).includeAll(true).allValue('.*').current(all);
}

export function dashboard({ uid, title, description, variables, rows }: Described): Dashboard {
  const builder = new DashboardBuilder(`Treadle / ${title}`).uid(`treadle-${uid}`).description(description).tags(['treadle']).refresh('30s').time({ from: 'now-3h', to: 'now' })
    .timezone('browser').tooltip(DashboardCursorSync.Crosshair).editable()
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'))
    .link(new DashboardLinkBuilder('Treadle').type(DashboardLinkType.Dashboards).tags(['treadle']).asDropdown(false).keepTime(true).includeVars(true));
  for (const [label, metric] of [['job', 'treadle_event_loop_lag_seconds'], ...variables] as const) builder.withVariable(variable(label, metric));
  for (const row of rows) {
    builder.withRow(new RowBuilder(row.title));
    for (const panel of row.panels) builder.withPanel(panel);
  }
  return builder.build();
}
