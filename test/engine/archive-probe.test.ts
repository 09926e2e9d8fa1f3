import { createArchiveProbe } from '@treadle/engine';
import { expect, test } from 'vitest';

function probed(check: () => Promise<void>) {
  const clock = { ms: 0 };
  const failures: unknown[] = [];
  return { clock, failures, probe: createArchiveProbe({ check }, { everyMs: 1000, timeoutMs: 20, monotonicMs: () => clock.ms, onFailure: (error) => { failures.push(error); } }) };
}

test('the archive is asked once in a while, however often readiness is, and a failure is told without its words', async () => {
  let asked = 0;
  let works = false;
  const { clock, failures, probe } = probed(() => { asked++; return works ? Promise.resolve() : Promise.reject(new Error('secret at s3')); });
  expect(await Promise.all([probe.problem(), probe.problem()])).toEqual(['the archive takes no writes', 'the archive takes no writes']);
  expect([asked, probe.worked, failures]).toEqual([1, false, [new Error('secret at s3')]]);
  works = true;
  clock.ms = 999;
  expect(await probe.problem()).toBe('the archive takes no writes');
  clock.ms = 1000;
  expect(await probe.problem()).toBe(null);
  expect([asked, probe.worked]).toEqual([2, true]);
});

test('one that hangs is said not to answer, and is not asked twice at once', async () => {
  let asked = 0;
  const { probe } = probed(() => { asked++; return new Promise(() => undefined); });
  for (let i = 0; i < 2; i++) expect(await probe.problem()).toBe('the archive does not answer');
  expect(asked).toBe(1);
});
