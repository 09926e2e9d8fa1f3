/**
 * How our panels are made. Every query names its metric through `metric`, so that the choice of jobs at the top of a dashboard reaches all of
 * them; counters are shown as rates over Grafana's own interval.
 */
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import { BigValueColorMode, GraphThresholdsStyleMode, LegendDisplayMode, LegendPlacement, StackingMode, TooltipDisplayMode, SortOrder } from '@grafana/grafana-foundation-sdk/common';
import { StackingConfigBuilder, GraphThresholdsStyleConfigBuilder, VizLegendOptionsBuilder, VizTooltipOptionsBuilder } from '@grafana/grafana-foundation-sdk/common';
import { MappingType, ThresholdsConfigBuilder, ThresholdsMode, type Panel, type ValueMapping } from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatPanel } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TimelinePanel } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as TablePanel } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as SeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries';

export const datasource = { type: 'prometheus', uid: '${datasource}' } as const;

/** A metric of the jobs that are chosen, with more matchers. */
export function metric(name: string, ...matchers: readonly string[]): string {
  return `${name}{${['job=~"$job"', ...matchers].join(',')}}`;
}

/** Of counters: a second, over all processes, by labels. */
export function rate(name: string, { by = [], where = [] }: { readonly by?: readonly string[]; readonly where?: readonly string[] } = {}): string {
  return `sum${grouped(by)}(rate(${metric(name, ...where)}[$__rate_interval]))`;
}

/** Of histograms, over all processes. */
export function quantile(q: number, name: string, { by = [], where = [] }: { readonly by?: readonly string[]; readonly where?: readonly string[] } = {}): string {
  return `histogram_quantile(${q}, sum${grouped(['le', ...by])}(rate(${metric(`${name}_bucket`, ...where)}[$__rate_interval])))`;
}

/** Of facts that every worker tells alike. */
export function fleet(name: string, { by = [], where = [] }: { readonly by?: readonly string[]; readonly where?: readonly string[] } = {}): string {
  return `max${grouped(by)}(${metric(name, ...where)})`;
}

/** 0 where a worker answers and nothing of the kind has happened: no series is there before the first. Without workers nothing is known. */
export function orZero(expr: string): string {
  return `${expr} or ${zero}`;
}

const zero = `0 * max(${metric('treadle_turn_slots')})`;

function grouped(by: readonly string[]): string {
  return by.length === 0 ? ' ' : ` by (${by.join(', ')}) `;
}

/** Expression and legend. */
export type Query = readonly [expr: string, legend: string];

export interface Shown {
  readonly title: string;
  readonly description: string;
  readonly unit: string;
  readonly queries: readonly Query[];
  /** Of 24. Default 8. */
  readonly width?: number;
  /** Where it becomes worth a look, and where it is bad. */
  readonly thresholds?: readonly [warn: number, bad: number];
  readonly stacked?: boolean;
}

function target([expr, legend]: Query, index: number): Builder<Dataquery> {
  return new DataqueryBuilder().datasource(datasource).refId(String.fromCharCode(65 + index)).expr(expr).legendFormat(legend).range();
}

function steps([warn, bad]: readonly [number, number]): Builder<{ mode: ThresholdsMode; steps: { value: number | null; color: string }[] }> {
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps([{ value: null, color: 'green' }, { value: warn, color: 'orange' }, { value: bad, color: 'red' }]);
}

export function series({ title, description, unit, queries, width = 8, thresholds, stacked = false }: Shown): Builder<Panel> {
  // A table has no room for more than two rows: where the names are few and known they stand in one line.
  const many = queries.some(([, legend]) => legend.includes('{{'));
  const panel = new SeriesPanel().title(title).description(description).unit(unit).datasource(datasource).span(width).height(8).min(0).lineWidth(1).fillOpacity(stacked ? 40 : 8).noValue('nothing seen')
    .legend(new VizLegendOptionsBuilder().displayMode(many ? LegendDisplayMode.Table : LegendDisplayMode.List).placement(LegendPlacement.Bottom).showLegend(true).calcs(['lastNotNull', 'max']).sortBy('Max').sortDesc(true))
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending).hideZeros(true)).targets(queries.map(target));
  if (stacked) panel.stacking(new StackingConfigBuilder().mode(StackingMode.Normal));
  if (thresholds !== undefined) panel.thresholds(steps(thresholds)).thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed));
  return panel;
}

/** One number each. */
export function stat({ title, description, unit, queries, width = 4, thresholds }: Shown): Builder<Panel> {
  const panel = new StatPanel().title(title).description(description).unit(unit).datasource(datasource).span(width).height(4).targets(queries.map(target))
    .colorMode(thresholds === undefined ? BigValueColorMode.None : BigValueColorMode.Value);
  return thresholds === undefined ? panel : panel.thresholds(steps(thresholds));
}

/** Which of a few states, over time. `states`: value → text and colour. */
export function timeline({ title, description, queries, width = 12 }: Omit<Shown, 'unit'>, states: Readonly<Record<string, readonly [text: string, color: string]>>): Builder<Panel> {
  const mapping: ValueMapping = { type: MappingType.ValueToText, options: Object.fromEntries(Object.entries(states).map(([value, [text, color]], index) => [value, { text, color, index }])) };
  return new TimelinePanel().title(title).description(description).datasource(datasource).span(width).height(8).mappings([mapping]).noValue('nothing seen').mergeValues(true).targets(queries.map(target));
}

/** The labels of what is there now. */
export function table({ title, description, queries, width = 8 }: Omit<Shown, 'unit'>): Builder<Panel> {
  return new TablePanel().title(title).description(description).datasource(datasource).span(width).height(8)
    .targets(queries.map(([expr], index) => new DataqueryBuilder().datasource(datasource).refId(String.fromCharCode(65 + index)).expr(expr).format(PromQueryFormat.Table).instant()))
    .withTransformation({ id: 'organize', options: { excludeByName: { Time: true, Value: true } } });
}

/** p50, p95, p99 of one histogram. */
export function latency(shown: Omit<Shown, 'queries' | 'unit'>, name: string, options: { readonly by?: readonly string[]; readonly where?: readonly string[]; readonly quantiles?: readonly number[] } = {}): Builder<Panel> {
  const { quantiles = [0.5, 0.95, 0.99] } = options;
  const legend = (options.by ?? []).map((label) => `{{${label}}} `).join('');
  return series({ ...shown, unit: 's', queries: quantiles.map((q): Query => [quantile(q, name, options), `${legend}p${q * 100}`]) });
}
