import { describe, expect, test } from 'vitest';
import { createInTime } from './in-time.ts';
import { createSchemaStore } from './schema-store.ts';

/** Stopped by the clock, every time. */
function endless(): object {
  for (;;);
}

/** Stopped `times` times. */
function slowAtFirst(times: number, seen: { tries: number }) {
  return () => {
    seen.tries += 1;
    if (seen.tries <= times) endless();
    return { tries: seen.tries };
  };
}

describe('what is stopped', () => {
  test('has taken too long where the processor was busy with it, and is not tried again for a moment', () => {
    let [nowMs, cpu] = [0, 0];
    // Each try uses its time up, whatever the machine that tests does beside it.
    const inTime = createInTime({ monotonicMs: () => nowMs, cpuMs: () => cpu += 10 });
    const seen = { tries: 0 };
    expect(inTime('k', 10, slowAtFirst(1, seen))).toBe('too_long');
    expect(inTime('k', 10, slowAtFirst(1, seen))).toBe('too_long');
    expect(seen.tries).toBe(1);
    nowMs += 1000;
    expect(inTime('k', 10, slowAtFirst(1, seen))).toEqual({ tries: 2 });
  });

  test('while the thread stood still is looked at again at once', () => {
    const inTime = createInTime({ cpuMs: () => 0 });
    expect(inTime('k', 10, slowAtFirst(2, { tries: 0 }))).toEqual({ tries: 3 });
  });

  test('each time because the thread stood still is nobody’s fault: the next look is a look', () => {
    const inTime = createInTime({ cpuMs: () => 0 });
    const seen = { tries: 0 };
    expect(inTime('k', 10, slowAtFirst(3, seen))).toBe('kept_waiting');
    expect(inTime('k', 10, slowAtFirst(3, seen))).toEqual({ tries: 4 });
  });
});

describe('a schema', () => {
  const light = { type: 'object', required: ['a'] };

  test('whose reading was stopped while the thread stood still is not lost: it is read the next time', () => {
    let busy = true;
    const schemas = createSchemaStore((_key, _limitMs, look) => busy ? 'kept_waiting' : look());
    expect(schemas.compiled('light', light)).toEqual({ type: 'unusable', problem: 'its input schema could not be read, since this machine is too busy' });
    expect(schemas.knows('light')).toBe(false);
    busy = false;
    expect(schemas.compiled('light', light)).toMatchObject({ type: 'usable' });
  });

  test('whose reading was stopped in the middle is read all the same', () => {
    let halts = true;
    const properties = { get a() {
      if (halts) {
        halts = false;
        endless();
      }
      return { type: 'string' };
    } };
    const schema = createSchemaStore(createInTime({ cpuMs: () => 0 })).compiled('light', { ...light, properties });
    expect(schema).toMatchObject({ type: 'usable' });
    expect(halts).toBe(false);
    const fits = (input: object): boolean => schema.type === 'usable' && schema.validate(input) as boolean;
    expect([fits({ a: 'x' }), fits({ a: 5 }), fits({})]).toEqual([true, false, false]);
  });
});
