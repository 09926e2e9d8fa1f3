/** For gateways of which a test only scripts the calls: every model is there, and has room. */
import type { ModelGateway } from '@treadle/engine';

export const alwaysThere: Pick<ModelGateway, 'admit' | 'crowdedMs' | 'unavailable'> = {
  admit: () => Promise.resolve({ unavailable: [], room_ms: 0, permit: null }),
  crowdedMs: () => 0,
  unavailable: () => [],
};
