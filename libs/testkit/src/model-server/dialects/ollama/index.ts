import type { Dialect } from '../dialect.ts';
import { problems } from './validator.ts';
import { beside, pieces, whole } from './wire.ts';

export const ollama: Dialect = {
  name: 'ollama', chat: 'POST /api/chat', streamType: 'application/x-ndjson', maxBodyBytes: Infinity,
  streams: (body) => body.stream !== false,
  errorBody: (_, message) => ({ error: message }),
  pieces, whole, problems, beside,
};
