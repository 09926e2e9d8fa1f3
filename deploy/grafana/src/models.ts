/** Which model serves, how well, and for how much. */
import { dashboard } from './dashboard.ts';
import { fleet, latency, metric, orZero, rate, series, stat, table, timeline } from './panels.ts';

const chosen = ['chain=~"$chain"', 'model=~"$model"'];
const model = ['model=~"$model"'];
const chain = ['chain=~"$chain"'];
const failed = [...chosen, 'outcome="failed"'];
/** A second, by model. */
const tokens = (direction: string): string => rate('treadle_model_tokens_total', { by: ['model'], where: [...model, `direction="${direction}"`] });
/** Cached tokens are a part of the input, and are counted there, too. */
const uncached = `clamp_min(${tokens('input')} - (${tokens('cached')} or 0 * ${tokens('input')}), 0)`;

export const modelsDashboard = () => dashboard({
  uid: 'models', title: 'Models', description: 'Requests, errors, latency and cost of models; chains, breakers and trials.', variables: [['chain', 'treadle_chain_model_info'], ['model', 'treadle_chain_model_info']],
  rows: [
    { title: 'Now', panels: [
      stat({ title: 'Requests', description: 'To all models.', unit: 'reqps', width: 6, queries: [[orZero(rate('treadle_model_requests_total', { where: chosen })), '']] }),
      stat({ title: 'Failed', description: 'Share of requests that failed.', unit: 'percentunit', width: 6, thresholds: [0.05, 0.2], queries: [[orZero(`${rate('treadle_model_requests_total', { where: failed })} / (${rate('treadle_model_requests_total', { where: [...chosen, 'outcome=~"replied|failed"'] })} > 0)`), '']] }),
      stat({ title: 'Cost an hour', description: 'At the present pace.', unit: 'currencyUSD', width: 6, queries: [[orZero(`3600 * ${rate('treadle_model_cost_usd_total', { where: model })}`), '']] }),
      stat({ title: 'Open breakers', description: 'Breakers that are open or half open.', unit: 'short', width: 6, thresholds: [1, 3], queries: [[orZero(`count(max by (breaker, error_type) (${metric('treadle_breaker_state')}) > 0)`), '']] }),
    ] },
    { title: 'Requests', panels: [
      series({ title: 'Requests by model', description: 'Replied, failed, aborted, or passed over.', unit: 'reqps', stacked: true, queries: [[rate('treadle_model_requests_total', { by: ['model', 'outcome'], where: chosen }), '{{model}} {{outcome}}']] }),
      series({ title: 'Errors by type', description: 'What the providers said.', unit: 'reqps', stacked: true, queries: [[rate('treadle_model_requests_total', { by: ['model', 'error_type'], where: failed }), '{{model}} {{error_type}}']] }),
      series({ title: 'Fallbacks', description: 'Hops along the chain.', unit: 'ops', queries: [[rate('treadle_model_fallbacks_total', { by: ['from_model', 'to_model', 'error_type'], where: chain }), '{{from_model}} → {{to_model}}: {{error_type}}']] }),
    ] },
    { title: 'Latency', panels: [
      latency({ title: 'Duration', description: 'From a request to the end of its reply. Requests without one are below.', width: 12 }, 'treadle_model_duration_seconds', { by: ['model'], where: model }),
      latency({ title: 'First token', description: 'From a request to its first text. Replies of calls alone have none.', width: 12 }, 'treadle_model_first_token_seconds', { by: ['model'], where: model }),
      latency({ title: 'Without a reply', description: 'From a request to its end, of those that failed, timed out or were aborted, of all models. Short: refused at once; long: a model that hangs.', width: 12 }, 'treadle_model_failure_seconds'),
      series({ title: 'In flight', description: 'Requests under way in all workers, and how many may be. Where the two meet, runs wait for this model.', unit: 'short', width: 12, queries: [[`sum by (model) (${metric('treadle_model_in_flight', ...model)})`, '{{model}}'], [`sum by (model) (${metric('treadle_model_allowance', ...model)})`, '{{model}}: allowed']] }),
    ] },
    { title: 'Tokens and cost', panels: [
      series({ title: 'Tokens', description: 'A second. Input is what was not cached; wasted: paid for and thrown away. Nothing is in two of them.', unit: 'short', stacked: true, width: 12, queries: [[uncached, '{{model}} input'], [tokens('cached'), '{{model}} cached'], [tokens('output'), '{{model}} output'], [tokens('wasted'), '{{model}} wasted']] }),
      series({ title: 'Cost an hour', description: 'By the prices of the configuration.', unit: 'currencyUSD', stacked: true, width: 12, queries: [[`3600 * ${rate('treadle_model_cost_usd_total', { by: ['model'], where: model })}`, '{{model}}']] }),
    ] },
    { title: 'Chains', panels: [
      timeline({ title: 'Which model serves', description: 'The models of a chain that were asked last, by any worker.', queries: [[`max by (chain, model) (${metric('treadle_chain_active_model', ...chosen)})`, '{{chain}}: {{model}}']] }, { 0: ['stands by', 'text'], 1: ['serves', 'green'] }),
      table({ title: 'The chains', description: 'Models by their place in the configuration.', width: 12, queries: [[`max by (chain, position, model) (${metric('treadle_chain_model_info', ...chosen)})`, '']] }),
      timeline({ title: 'Breakers', description: 'A breaker that is open keeps its model from being asked.', queries: [[`max by (breaker, error_type) (${metric('treadle_breaker_state')})`, '{{breaker}} {{error_type}}']] }, { 0: ['closed', 'green'], 1: ['half open', 'orange'], 2: ['open', 'red'] }),
      series({ title: 'Breakers that moved', description: 'One that opens and closes for ever is worth a look.', unit: 'ops', width: 12, queries: [[rate('treadle_breaker_transitions_total', { by: ['breaker', 'error_type', 'to'] }), '{{breaker}} {{error_type}} → {{to}}']] }),
    ] },
    { title: 'Trials', panels: [
      series({ title: 'Weight of models on trial', description: 'Percent of new runs that begin on it.', unit: 'percent', width: 12, queries: [[fleet('treadle_canary_weight', { by: ['chain', 'model'], where: chosen }), '{{chain}}: {{model}}']] }),
      series({ title: 'Verdicts', description: 'Decisions in the last hour, of the judge and of people.', unit: 'short', width: 12, queries: [[`sum by (chain, decision) (increase(${metric('treadle_canary_decisions_total', ...chain)}[1h]))`, '{{chain}}: {{decision}}']] }),
    ] },
    { title: 'What was made good', panels: [
      series({ title: 'Recoveries', description: 'Failures that became continuations. `none: backoff` is the same request once more, later.', unit: 'ops', stacked: true, queries: [[rate('treadle_recoveries_total', { by: ['site', 'action'] }), '{{site}}: {{action}}']] }),
      series({ title: 'Answers sent back', description: 'By validators.', unit: 'ops', stacked: true, queries: [[rate('treadle_validation_errors_total', { by: ['validator', 'error_type'] }), '{{validator}}: {{error_type}}']] }),
      series({ title: 'Requests cut by providers', description: 'The provider counted far fewer tokens than were sent: raise its context window.', unit: 'ops', queries: [[rate('treadle_context_truncated_total', { by: ['model'], where: model }), '{{model}}']] }),
    ] },
  ],
});
