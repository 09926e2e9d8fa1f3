export { ApiError, createClient, ServerUnreachable, type Client, type ClientOptions, type Run, type RunRequest } from './client.ts';
export { createSseParser, type SseMessage } from './sse.ts';
