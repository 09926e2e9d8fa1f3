/** The protections of what a fleet knows together: each keeps many processes from doing at once what one may do. */
import type { Protection } from './protections.ts';

const scripts = 'libs/fleet/src/scripts';
const conformance = (named: string) => ({ file: 'libs/fleet/src/model-fleet.test.ts', named });

export const fleetProtections: readonly Protection[] = [
  {
    name: 'rate-window',
    without: 'a key is given a third of its rate in each quarter of a minute, with no look at the minute',
    edits: [{ file: `${scripts}/reserve.lua`, find: 'wait_for_window(lately, what, wanted, limit, 60, now, slot_ms), ', replace: '' }],
    tests: [conformance('have nothing for a second one until a minute after the first')],
  },
  {
    name: 'rate-whole-window',
    without: 'a minute is sixty sixtieths, so that one which begins within one of them is given more',
    edits: [{ file: `${scripts}/includes/window.lua`, find: 'math.floor(now / slot_ms), length + 1', replace: 'math.floor(now / slot_ms), length' }],
    tests: [conformance('have nothing for a second one until a minute after the first')],
  },
  {
    name: 'rate-line',
    without: 'who comes later may take what a run in line waits for',
    edits: [{ file: `${scripts}/reserve.lua`, find: 'before_in_line(ask.run_id, ask, now)', replace: '0, 0' }],
    tests: [conformance('let nobody pass a run that is still to come')],
  },
  {
    name: 'reservation-once',
    without: 'a reservation that is asked for again is counted again',
    edits: [{ file: `${scripts}/reserve.lua`, find: "if redis.call('HEXISTS', rates.calls, ask.id) == 1 then return { 'granted' } end\n", replace: '' }],
    tests: [conformance('answer a reservation that is asked for again as before')],
  },
  {
    name: 'place-lease',
    without: 'a process that dies keeps its places in flight',
    edits: [{ file: `${scripts}/includes/rates.lua`, find: "redis.call('ZREM', rates.flying, unpack(ended))", replace: '' }],
    tests: [conformance('are free when a lease has run out')],
  },
  {
    name: 'one-probe',
    without: 'everybody may probe at once',
    edits: [{ file: `${scripts}/take_probe.lua`, find: "if holder and holder ~= ARGV[2] then return { 'not_now' } end\n", replace: '' }],
    tests: [conformance('are probed by one of fifty')],
  },
  {
    name: 'probe-lease',
    without: 'a process that dies keeps its probe, and the breaker stays open',
    edits: [{ file: `${scripts}/take_probe.lua`, find: "ARGV[2], 'PX', ARGV[3])", replace: 'ARGV[2])' }],
    tests: [conformance('can be probed again when a lease has run out')],
  },
  {
    name: 'probe-token',
    without: 'a probe that took too long closes a breaker that somebody else probes',
    edits: [{ file: `${scripts}/close.lua`, find: " or redis.call('GET', KEYS[2]) ~= ARGV[2]", replace: '' }],
    tests: [conformance('are closed by the probe that is held')],
  },
  {
    name: 'forced-open',
    without: 'a probe closes what a person has opened',
    edits: [{ file: `${scripts}/close.lua`, find: 'cjson.decode(text).forced or ', replace: '' }],
    tests: [conformance('that a person forces meanwhile are closed by no probe')],
  },
  {
    name: 'outcomes-once',
    without: 'what a process has seen counts twice when it is sent again after a cut connection',
    edits: [{ file: `${scripts}/exchange.lua`, find: "if ARGV[3] ~= '' and (tonumber(redis.call('GET', KEYS[4])) or 0) < tonumber(ARGV[2]) then", replace: "if ARGV[3] ~= '' then" }],
    tests: [conformance('are one sum for each target')],
  },
  {
    name: 'fleet-not-waited-for',
    without: 'a call waits for a Redis that is away for as long as the client does',
    edits: [{ file: 'libs/fleet/src/script-runner.ts', find: 'return await Promise.race([promise, late]);', replace: 'return await promise;' }],
    tests: [{ file: 'libs/fleet/src/away.test.ts', named: 'a server that stands still' }],
  },
  {
    name: 'probe-told',
    without: 'a probe is let go before the fleet has heard what came of it, and the breaker stays half open',
    edits: [{ file: 'libs/models/src/health/model-health.ts', find: 'void told.then(() => { for (const probe of probes) this.#dropProbe(probe); });', replace: 'for (const probe of probes) this.#dropProbe(probe);\n      void told;' }],
    tests: [{ file: 'libs/models/src/health/model-health.test.ts', named: 'is let go only when the fleet has been told' }],
  },
  {
    name: 'slots-for-others',
    without: 'a model that hangs is asked by as many runs as there are slots, and those of other models wait for it',
    edits: [{ file: 'libs/engine/src/execute-turn.ts', find: '  if (wait_ms <= 0) return false;\n', replace: '  if (wait_ms >= 0) return false;\n' }],
    tests: [{ file: 'test/engine/crowded.test.ts', named: 'comes again after its wait' }],
  },
  {
    name: 'silent-share',
    without: 'models of one provider that hang together take all slots, half of them each',
    edits: [{ file: 'libs/models/src/health/allowance.ts', find: 'return silent && options.share < 1 ?', replace: 'return silent && options.share < 0 ?' }],
    tests: [{ file: 'libs/models/src/health/model-health.test.ts', named: 'take half of the slots together' }],
  },
  {
    name: 'held-back-heard',
    without: 'a model that is held back times out too seldom for its breaker to open',
    edits: [{ file: 'libs/models/src/health/allowances.ts', find: 'const count = standsFor(among, { waiting, slots });', replace: 'const count = 1;' }],
    tests: [{ file: 'libs/models/src/health/model-health.test.ts', named: 'open the breaker as if all slots had been theirs' }],
  },
  {
    name: 'refused-for-good',
    without: 'a request that was refused for what is in it is sent to the same model again',
    edits: [{ file: 'libs/core/src/recovery.ts', find: 'const elsewhere: Recovery = { same_model_retries: 0,', replace: 'const elsewhere: Recovery = { same_model_retries: 1,' }],
    tests: [{ file: 'test/cases/error-samples.test.ts', named: 'R15' }],
  },
];
