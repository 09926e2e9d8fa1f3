/** Kind 15 and R20: a conversation that goes on at another model, on another wire, keeps its pairs and sends nobody's thoughts to anybody else. */
import { refusal, reply, text, type ScriptedCall, type ScriptedReply } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finish, ofType, play } from './general-checks.ts';
import { wires, type Wire } from './speech.ts';
import { startCases, type Cases, type Script } from './stage.ts';
import { callsOf, messagesOf, resultCount, resultsOf } from './wire.ts';

const orders: readonly (readonly Wire[])[] = wires.flatMap((first) => wires.filter((second) => second !== first)
  .map((second) => [first, second, wires.find((third) => third !== first && third !== second)!]));
const named = (order: readonly Wire[]): string => order.join('-');

let cases: Cases;
beforeAll(async () => {
  const chained = (chains: Readonly<Record<string, readonly string[]>>) => ({
    // Every switch is made by the same refusal.
    chains, agents: Object.fromEntries(Object.keys(chains).map((chain) => [chain, { chain, limits: { same_error_limit: 20 } }])),
  });
  cases = await startCases({
    models: { ...Object.fromEntries(wires.map((provider) => [provider, { provider }])), A: { provider: 'anthropic' }, B: { provider: 'anthropic' } },
    ...chained({ AB: ['A', 'B'], ...Object.fromEntries(orders.map((order) => [named(order), order])) }),
  });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

describe.concurrent('thoughts', () => {
  test('C69: that one model has signed are not sent to another of the same wire; the call’s result is', async () => {
    const { run, requests, events, live } = await play(cases, 'C69', (body, count) => {
      if (body.model === 'B') return text('ok');
      return count === 0 ? reply({ thinking: 'I weigh it.', redacted_thinking: 'secretly', text: 'Let me see.', calls: [{ id: 'toolu_1', name: 't__weather', args: { city: 'x' } }] }) : refusal(529, 'Overloaded');
    }, { agent: 'AB' });
    expect(run).toMatchObject({ status: 'completed', answer: 'ok', model: 'B' });
    const [back, ...more] = requests.slice(1);
    // Its own it gets back, as they came.
    expect(back).toMatchObject({ body: { model: 'A' } });
    expect(messagesOf(back).flatMap((message) => message.thoughts)).toMatchObject([{ type: 'thinking', thinking: 'I weigh it.' }, { type: 'redacted_thinking' }]);
    const atB = more.filter((request) => request.body?.model === 'B');
    expect(atB).toHaveLength(1);
    expect(messagesOf(atB[0]).flatMap((message) => message.thoughts)).toEqual([]);
    expect(resultsOf(atB[0])).toEqual([{ id: 'toolu_1', content: 'It rains in x.' }]);
    expect(ofType(events, 'assistant_thinking').map((event) => event.content)).toEqual(['I weigh it.']);
    expect(live.starts()).toHaveLength(1);
  });
});

const turns = 6;
/** Which place of the chain answers each turn: one turn at the second model, wherever it is, then the third; or another one at every turn. */
const plans: Readonly<Record<string, (turn: number) => number>> = {
  ...Object.fromEntries([1, 2, 3, 4].map((at) => [`at turn ${at + 1}`, (turn: number) => turn < at ? 0 : turn === at ? 1 : 2])),
  'at every turn': (turn) => turn % 3,
};

/** Ids that are legal on no other wire: too long, of other characters, none at all, the same in every turn. */
const oddIds: Readonly<Record<Wire, (turn: number) => readonly [string | null, string | null]>> = {
  openai: (turn) => ['functions.t__note:0', `chatcmpl-tool-${'0123456789'.repeat(5)}:${turn}`],
  anthropic: (turn) => [`toolu_${'Aa0'.repeat(14)}_${turn}`, 'toolu-0'],
  ollama: (turn) => [null, `call/é ${turn}`],
};

const valuesOf = (turn: number): readonly string[] => [`${'abcdef'[turn]!}1`, `${'abcdef'[turn]!}2`];

function answerOf(wire: Wire, turn: number): ScriptedReply {
  const thoughts = { thinking: `${wire} thinks, ${turn}`, ...(turn % 2 === 0 ? { redacted_thinking: `${wire} hides, ${turn}` } : {}) };
  if (turn === turns - 1) return reply({ ...thoughts, text: 'all noted' });
  const calls = valuesOf(turn).map((v, index): ScriptedCall => ({ id: oddIds[wire](turn)[index]!, name: 't__note', args: { v } }));
  return reply({ ...thoughts, ...(turn % 2 === 0 ? { text: `Turn ${turn} ` } : {}), calls });
}

describe('R20: a chain of three wires', () => {
  const combinations = orders.flatMap((order) => Object.entries(plans).map(([where, plan]) => ({ label: `R20 ${named(order)} ${where}`, order, plan })));

  test(`keeps the conversation valid, and repeats no tool, in whatever order and wherever it switches (${combinations.length})`, async () => {
    expect(combinations).toHaveLength(30);
    const scriptOf = ({ order, plan }: (typeof combinations)[number]): Script => (body) => {
      const turn = resultCount(body) / 2;
      const wire = order[plan(turn)]!;
      return body.model === wire ? answerOf(wire, turn) : refusal(400, 'unexpected field "foo"');
    };
    const live = await Promise.all(combinations.map((each) => cases.begin(each.label, scriptOf(each), { agent: named(each.order) })));
    for (const [index, each] of live.entries()) {
      const { order, plan, label } = combinations[index]!;
      const { run, requests } = await finish(cases, each);
      expect(run, label).toMatchObject({ status: 'completed', answer: 'all noted', tool_calls: 2 * (turns - 1) });
      const answered = requests.filter((request) => request.reply?.type === 'message');
      const expected = Array.from({ length: turns }, (_, turn) => order[plan(turn)]!);
      expect(answered.map((request) => request.dialect), label).toEqual(expected);
      expect(new Set(expected).size, label).toBe(3);
      const values = Array.from({ length: turns - 1 }, (_, turn) => valuesOf(turn)).flat();
      expect(each.starts('note').map((line) => String(line.input['v'])).sort(), label).toEqual(values);
      expect(callsOf(answered.at(-1)).map((call) => call.args), label).toEqual(values.map((v) => ({ v })));
      expect(resultsOf(answered.at(-1)).map((result) => result.content), label).toEqual(values.map((v) => `noted ${v}`));
      // A model's own thoughts come back to it, whoever spoke in between; nobody else's do.
      for (const [turn, request] of answered.entries()) {
        const own = request.dialect !== 'anthropic' ? [] : expected.slice(0, turn).flatMap((wire, at) => wire !== 'anthropic' ? [] : at % 2 === 0 ? ['thinking', 'redacted_thinking'] : ['thinking']);
        expect(messagesOf(request).flatMap((message) => message.thoughts.map((thought) => (thought as { type: string }).type)), `${label}, turn ${turn}`).toEqual(own);
      }
    }
  }, 90_000);
});
