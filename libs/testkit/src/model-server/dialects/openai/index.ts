import type { Dialect } from '../dialect.ts';
import { problems } from './validator.ts';
import { beside, errorBody, pieces, whole } from './wire.ts';

export const openai: Dialect = {
  name: 'openai', chat: 'POST /v1/chat/completions', streamType: 'text/event-stream; charset=utf-8', maxBodyBytes: Infinity,
  streams: (body) => body.stream === true,
  pieces, whole, errorBody, problems, beside,
};
