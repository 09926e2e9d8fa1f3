import type { Dialect } from '../dialect.ts';
import { problems } from './validator.ts';
import { beside, errorBody, pieces, whole } from './wire.ts';

export const anthropic: Dialect = {
  name: 'anthropic', chat: 'POST /v1/messages', streamType: 'text/event-stream; charset=utf-8', maxBodyBytes: 32 * 1024 * 1024,
  streams: (body) => body.stream === true,
  pieces, whole, errorBody, problems, beside,
};

export { signatureOf } from './signature.ts';
