/** What tools do, how long they take, and which calls nobody knows the outcome of. */
import { dashboard } from './dashboard.ts';
import { fleet, latency, orZero, rate, series, stat } from './panels.ts';

const tool = ['tool=~"$tool"'];
const run = [...tool, 'outcome!="deduplicated"'];

export const toolsDashboard = () => dashboard({
  uid: 'tools', title: 'Tools', description: 'Calls of tools by outcome, their duration, reuse and doubt.', variables: [['tool', 'treadle_tool_calls_total']],
  rows: [
    { title: 'Now', panels: [
      stat({ title: 'Calls', description: 'Of all tools.', unit: 'ops', width: 8, queries: [[orZero(rate('treadle_tool_calls_total', { where: run })), '']] }),
      stat({ title: 'Errors', description: 'Share of calls that came to an error.', unit: 'percentunit', width: 8, thresholds: [0.1, 0.3], queries: [[orZero(`${rate('treadle_tool_calls_total', { where: [...tool, 'outcome="error"'] })} / (${rate('treadle_tool_calls_total', { where: run })} > 0)`), '']] }),
      stat({ title: 'In doubt', description: 'Calls for which runs wait until a person says whether they happened.', unit: 'short', width: 8, thresholds: [1, 5], queries: [[fleet('treadle_tool_calls_in_doubt'), '']] }),
    ] },
    { title: 'Calls', panels: [
      series({ title: 'By outcome', description: 'Unknown: a crash, a time-out or an abort hid whether it happened.', unit: 'ops', stacked: true, queries: [[rate('treadle_tool_calls_total', { by: ['outcome'], where: tool }), '{{outcome}}']] }),
      series({ title: 'By tool', description: 'Names that models make up are `other`.', unit: 'ops', stacked: true, queries: [[rate('treadle_tool_calls_total', { by: ['tool'], where: run }), '{{tool}}']] }),
      series({ title: 'Errors by tool', description: 'Calls that came to an error.', unit: 'ops', queries: [[rate('treadle_tool_calls_total', { by: ['tool'], where: [...tool, 'outcome="error"'] }), '{{tool}}']] }),
    ] },
    { title: 'Duration', panels: [
      latency({ title: 'Duration of all that are chosen', description: 'From begin to result.', width: 12 }, 'treadle_tool_duration_seconds', { where: tool }),
      latency({ title: 'Duration by tool', description: 'From begin to result.', width: 12 }, 'treadle_tool_duration_seconds', { by: ['tool'], where: tool }),
    ] },
    { title: 'After crashes', panels: [
      series({ title: 'Reused', description: 'Results that an earlier delivery had recorded, and which were not run again.', unit: 'ops', width: 12, queries: [[rate('treadle_tool_deduplicated_total', { by: ['tool'], where: tool }), '{{tool}}']] }),
      series({ title: 'In doubt', description: 'Calls that wait for a person.', unit: 'short', width: 12, thresholds: [1, 5], queries: [[fleet('treadle_tool_calls_in_doubt'), 'in doubt']] }),
    ] },
  ],
});
