/** What keeps ends from being told to nobody, to others, or unsigned. */
import type { Protection } from './protections.ts';

const conformance = (named: string) => ({ file: 'libs/run-store/src/run-store.test.ts', named });
const engine = (named: string) => ({ file: 'test/engine/webhooks.test.ts', named });
const sender = (named: string) => ({ file: 'libs/webhooks/src/sender.test.ts', named });

export const webhookProtections: readonly Protection[] = [
  {
    name: 'told-with-the-finish',
    without: 'an end is not written down to be told before its run leaves those with duties',
    edits: [{ file: 'libs/run-store/src/scripts/finished.lua', find: '  add_delivery(new.keys, ARGV[1], new)\n', replace: '' }],
    tests: [conformance('a delivery is written by the finish that brings it')],
  },
  {
    name: 'told-lease',
    without: 'what was handed out to be told is forgotten when its worker dies',
    edits: [{ file: 'libs/run-store/src/scripts/webhooks_take.lua', find: "redis.call('ZADD', lane_key(webhooks, tenant, lane), whole(now + take.lease_ms), run_id)", replace: "redis.call('ZREM', lane_key(webhooks, tenant, lane), run_id)" }],
    tests: [conformance('what was handed out is hidden for its lease')],
  },
  {
    name: 'told-by-the-newest',
    without: 'an attempt whose lease is over settles that of another worker',
    edits: [{ file: 'libs/run-store/src/scripts/webhook_settle.lua', find: "if not delivery or num(delivery, 'taken') ~= said.taken then", replace: 'if not delivery then' }],
    tests: [conformance('the older taking settles nothing')],
  },
  {
    name: 'told-lanes',
    without: 'a receiver that does not answer takes all attempts that a worker has',
    edits: [{ file: 'libs/run-store/src/scripts/webhooks_take.lua', find: 'math.min(left - enough, take.per_lane - (busy[lane] or 0))', replace: 'left' }],
    tests: [conformance('lanes do not wait for each other')],
  },
  {
    name: 'told-in-turn',
    without: 'receivers that have most to be told come first each time that one of their attempts has ended',
    edits: [{ file: 'libs/run-store/src/scripts/includes/webhooks.lua', find: "'LT', whole(at), lane)", replace: "redis.call('ZRANGE', lane_key(webhooks, tenant, lane), 0, 0, 'WITHSCORES')[2], lane)" }],
    tests: [conformance('a lane that was served goes behind those that wait')],
  },
  {
    name: 'told-tenants',
    without: 'a tenant with many receivers that do not answer takes all attempts that a worker has',
    edits: [{ file: 'libs/run-store/src/scripts/webhooks_take.lua', find: 'math.min(left, take.per_tenant - under_way)', replace: 'left' }],
    tests: [conformance('a tenant with many receivers stands in front of no other')],
  },
  {
    name: 'told-again',
    without: 'a receiver that fails is asked once',
    edits: [{ file: 'libs/core/src/webhook.ts', find: '  if (step === undefined) return', replace: '  if (step === undefined || tries >= 0) return' }],
    tests: [engine('an ended run is told once, with the same id and body at each attempt')],
  },
  {
    name: 'told-stamped-anew',
    without: 'each attempt bears the time of the first',
    edits: [{ file: 'libs/webhooks/src/sender.ts', find: 'const timestamp = Math.floor(options.nowMs() / 1000);', replace: 'const timestamp = (stamps[id] ??= Math.floor(options.nowMs() / 1000));' }, { file: 'libs/webhooks/src/sender.ts', find: 'interface Receiver {', replace: 'const stamps: Record<string, number> = {};\n\ninterface Receiver {' }],
    tests: [sender('a later attempt bears a later time')],
  },
  {
    name: 'told-once-archived',
    without: 'in strict mode an end is told before the archive has it',
    edits: [{ file: 'libs/engine/src/webhook-dispatcher.ts', find: 'if (mayTell !== undefined && !await mayTell(run_id)) {', replace: 'if (mayTell !== undefined && !await mayTell(run_id) && run_id === \'\') {' }],
    tests: [engine('nobody is told of what nobody may see yet')],
  },
];
