/** Which calls a person has to approve of, as the file says it. */
import { expect, test } from 'vitest';
import { checkConfig, toolPolicies } from './index.ts';

const withTools = (tools: object) => checkConfig({
  models: { small: { provider: 'ollama', model: 'm' } }, chains: { default: { models: ['small'] } }, agents: { a: { instructions: 'x' } }, tools }, {});
const problemsAt = (tools: object): string[] => {
  const outcome = withTools(tools);
  return outcome.type === 'ok' ? [] : outcome.problems.map(({ path }) => path);
};

test.each([
  [{ approval: 'never' }], [{ approval: 'always', approval_timeout_s: 3600, on_approval_timeout: 'expire' }], [{ approval: 'destructive', approval_timeout_s: null, on_approval_timeout: 'deny' }],
  [{ approval: { when: { arg: 'path', matches: '^/etc/' } } }],
])('%j is taken as it is', (policy) => {
  const outcome = withTools({ 'files/*': policy });
  if (outcome.type !== 'ok') throw new Error(JSON.stringify(outcome.problems));
  expect(toolPolicies(outcome.config)).toEqual({ 'files/*': policy });
});

test.each<[object, string]>([
  [{ approval: 'sometimes' }, 'approval'], [{ approval: { when: { arg: 'path', matches: '(' } } }, 'approval'], [{ approval: { when: { arg: 'path' } } }, 'approval'],
  [{ approval: { when: { arg: 'path', matches: 'x', also: 1 } } }, 'approval'], [{ approval_timeout_s: 0 }, 'approval_timeout_s'], [{ on_approval_timeout: 'allow' }, 'on_approval_timeout'],
])('%j is refused at its path', (policy, path) => {
  expect(problemsAt({ x: policy }).map((each) => each.slice(0, `tools.x.${path}`.length))).toEqual([`tools.x.${path}`]);
});

test('what the run itself carries out is not asked about, and whoever wants it is told so; by a pattern it is passed over', () => {
  expect(problemsAt({ spawn_agent: { approval: 'always' }, ask_user: { approval: 'destructive' } })).toEqual(['tools.spawn_agent.approval', 'tools.ask_user.approval']);
  expect(problemsAt({ '*': { approval: 'always' }, spawn_agent: { approval: 'never' } })).toEqual([]);
});
