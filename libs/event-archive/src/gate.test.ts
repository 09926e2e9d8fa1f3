import { describe, expect, it } from 'vitest';
import { gated } from './gate.ts';
import { ObjectsFailed, type ObjectStore } from './objects.ts';

/** A store that answers as it is told, and counts; the clock is moved by hand. */
function stage() {
  const told = { how: 'fine' as 'fine' | 'unavailable' | 'refused' };
  let calls = 0;
  let clockMs = 0;
  const act = <T>(answer: T): Promise<T> => {
    calls++;
    return told.how === 'fine' ? Promise.resolve(answer) : Promise.reject(new ObjectsFailed(told.how, 'planned'));
  };
  const objects: ObjectStore = {
    capabilities: null, put: () => act('stored' as const), get: () => act(null), delete: () => act(undefined), close() {},
    async* list() { yield await act('k'); },
  };
  const gate = gated(objects, { nowMs: () => clockMs, jitter: () => 0 });
  const ask = (): Promise<string> => gate.get('k', 1).then(() => 'fine', (error: ObjectsFailed) => error.message.includes('asked again soon') ? 'not asked' : error.kind);
  return { told, gate, ask, calls: () => calls, passMs: (ms: number) => { clockMs += ms; } };
}

describe('a gate before a store', () => {
  it('lets a single failure pass, and shuts after two in a row', async () => {
    const { told, ask, calls } = stage();
    for (const how of ['unavailable', 'fine', 'unavailable', 'fine'] as const) {
      told.how = how;
      expect(await ask()).toBe(how);
    }
    told.how = 'unavailable';
    expect([await ask(), await ask(), await ask(), await ask()]).toEqual(['unavailable', 'unavailable', 'not asked', 'not asked']);
    expect(calls()).toBe(6);
  });

  it('asks once when a pause is over, and pauses longer each time, up to ten seconds', async () => {
    const { told, ask, calls, passMs } = stage();
    told.how = 'unavailable';
    await ask();
    await ask();
    for (const seconds of [1, 2, 4, 8, 10, 10]) {
      const before = calls();
      passMs(seconds * 1000 - 1);
      expect(await ask()).toBe('not asked');
      passMs(1);
      expect(await Promise.all([ask(), ask(), ask()])).toEqual(['unavailable', 'not asked', 'not asked']);
      expect(calls() - before).toBe(1);
    }
  });

  it('is open again, and forgets, as soon as the store has answered', async () => {
    const { told, ask, passMs } = stage();
    told.how = 'unavailable';
    await ask();
    await ask();
    passMs(1000);
    told.how = 'fine';
    expect([await ask(), await ask()]).toEqual(['fine', 'fine']);
    told.how = 'unavailable';
    expect([await ask(), await ask(), await ask()]).toEqual(['unavailable', 'unavailable', 'not asked']);
    passMs(1000);
    expect(await ask()).toBe('unavailable');
  });

  it('never shuts because a store refuses: it is there', async () => {
    const { told, ask } = stage();
    told.how = 'refused';
    expect([await ask(), await ask(), await ask(), await ask()]).toEqual(['refused', 'refused', 'refused', 'refused']);
  });

  it('counts every kind of call, and many at once as what they are', async () => {
    const { told, gate, calls, ask, passMs } = stage();
    told.how = 'unavailable';
    const all = [gate.put('k', Buffer.alloc(1), 'create'), gate.delete('k'), gate.list('', '')[Symbol.asyncIterator]().next(), gate.get('k', 1), gate.get('k', 1)];
    await Promise.allSettled(all);
    expect(calls()).toBe(5);
    expect(await ask()).toBe('not asked');
    passMs(1000);
    told.how = 'fine';
    expect(await ask()).toBe('fine');
  });
});
