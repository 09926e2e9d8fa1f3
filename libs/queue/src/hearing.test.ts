import { expect, test } from 'vitest';
import { createHearing, type HearingLook } from './hearing.ts';

const looks = (...seen: Partial<HearingLook>[]) => {
  const hearing = createHearing(3);
  return seen.map((look) => `${hearing.look({ waiting: 1, taken: 0, inHand: 0, room: 4, ...look })} ${hearing.deaf}`);
};

test.each<[string, Partial<HearingLook>[], string[]]>([
  ['jobs wait and none is taken', [{}, {}, {}, {}], ['false false', 'false false', 'false false', 'true true']],
  ['it stays so', [{}, {}, {}, {}, {}, {}, {}], ['false false', 'false false', 'false false', 'true true', 'false true', 'false true', 'true true']],
  ['one is taken in between', [{}, {}, {}, { taken: 1 }, { taken: 1 }], ['false false', 'false false', 'false false', 'false false', 'false false']],
  ['one is taken afterwards', [{}, {}, {}, {}, { taken: 1 }], ['false false', 'false false', 'false false', 'true true', 'false false']],
  ['nothing waits', [{}, {}, {}, { waiting: 0 }], ['false false', 'false false', 'false false', 'false false']],
  ['there is no room', [{ inHand: 4 }, { inHand: 4 }, { inHand: 4 }, { inHand: 4 }], ['false false', 'false false', 'false false', 'false false']],
])('%s', (_, seen, expected) => { expect(looks(...seen)).toEqual(expected); });
