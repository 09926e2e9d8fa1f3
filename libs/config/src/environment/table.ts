/** Every environment variable: its name, default, meaning and form. The documentation is tested against this table. */
import { isWebhookSecret } from '@treadle/core';
import { anyText, decimal, headerList, httpUrl, listenHost, matching, ollamaHost, oneOf, redisUrl, wholeNumber, type Parser } from './parsers.ts';

export interface Variable<T, Default extends T | null> {
  readonly name: string;
  /** What holds where it is unset; null = nothing. */
  readonly default: Default;
  readonly meaning: string;
  /** Its value must never be shown. */
  readonly secret: boolean;
  readonly parse: Parser<T>;
}

function required<T>(name: string, fallback: T, rest: { meaning: string; parse: Parser<T> }): Variable<T, T> {
  return { name, default: fallback, secret: false, ...rest };
}

function optional<T>(name: string, rest: { meaning: string; parse: Parser<T> }): Variable<T, null> {
  return { name, default: null, secret: false, ...rest };
}

function secret(name: string, rest: { meaning: string; parse: Parser<string> }): Variable<string, null> {
  return { name, default: null, secret: true, ...rest };
}

const prefixForm = matching(/^[A-Za-z0-9_.-]{1,64}$/, '1 to 64 letters, digits, "_", "-" or "."');
const s3PrefixForm = matching(/^[^/\s][^\s]*$/, 'a key prefix without spaces, not beginning with "/"');
const webhookSecretForm: Parser<string> = (text) => isWebhookSecret(text) ? { type: 'ok', value: text } : { type: 'bad', expected: 'whsec_ and base64 of 24 to 64 bytes' };
const tokenForm = matching(/^\S{8,}$/, 'at least 8 characters, no spaces');

export const environmentTable = {
  redisUrl: secret('REDIS_URL', { meaning: 'Redis: redis://, rediss://, redis-sentinel://h1,h2/master or redis-cluster://h1,h2', parse: redisUrl }),
  prefix: required('TREADLE_PREFIX', 'treadle', { meaning: 'beginning of every key in Redis', parse: prefixForm }),
  shards: required('TREADLE_SHARDS', 1, { meaning: 'shards of the runs; may grow, never shrink below a live run\'s', parse: wholeNumber(1, 16) }),
  s3Bucket: optional('S3_BUCKET', { meaning: 'bucket of the archive', parse: matching(/^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/, 'a bucket name') }),
  s3Endpoint: optional('S3_ENDPOINT', { meaning: 'S3-compatible server; unset = AWS', parse: httpUrl }),
  s3Region: optional('S3_REGION', { meaning: 'region of the bucket', parse: matching(/^[A-Za-z0-9-]+$/, 'a region name') }),
  s3AccessKeyId: secret('S3_ACCESS_KEY_ID', { meaning: 'key of the archive; unset = the usual AWS credential chain', parse: anyText }),
  s3SecretAccessKey: secret('S3_SECRET_ACCESS_KEY', { meaning: 'secret of that key', parse: anyText }),
  s3Prefix: optional('S3_PREFIX', { meaning: 'beginning of every object key', parse: s3PrefixForm }),
  archiveDir: optional('ARCHIVE_DIR', { meaning: 'folder of the file archive, where no bucket is set', parse: anyText }),
  archiveMode: required('ARCHIVE_MODE', 'async', { meaning: 'strict: nothing is shown, and no tool begun, before the archive has it', parse: oneOf('async', 'strict') }),
  ollamaHost: optional('OLLAMA_HOST', { meaning: 'Ollama of the built-in configuration', parse: ollamaHost }),
  ollamaModel: optional('OLLAMA_MODEL', { meaning: 'model of the built-in configuration', parse: anyText }),
  docsFolder: optional('TREADLE_DOCS', { meaning: 'folder that the built-in agent answers from; unset = the documentation of Treadle', parse: anyText }),
  configPath: optional('TREADLE_CONFIG', { meaning: 'path of the configuration file', parse: anyText }),
  host: required('HOST', '127.0.0.1', { meaning: 'address the API listens on', parse: listenHost }),
  port: required('PORT', 8080, { meaning: 'port of the API; 0 = any free one', parse: wholeNumber(0, 65_535) }),
  metricsPort: required('METRICS_PORT', 9464, { meaning: 'port of a worker\'s metrics; 0 = any free one', parse: wholeNumber(0, 65_535) }),
  workerConcurrency: required('WORKER_CONCURRENCY', 50, { meaning: 'turns in flight per worker process', parse: wholeNumber(1, 10_000) }),
  leaseMs: required('TREADLE_LEASE_MS', 8000, { meaning: 'how long the queue believes in a silent worker; the stalled check runs at a third of it', parse: wholeNumber(200, 600_000) }),
  breakerVolume: required('TREADLE_BREAKER_VOLUME', 20, { meaning: 'outcomes of one target within 10 s, over all workers, below which no circuit breaker opens', parse: wholeNumber(1, 1_000_000) }),
  modelSlowStart: required('TREADLE_MODEL_SLOW_START', 0.5, { meaning: 'share of a worker\'s slots that calls to one model may hold at first, at least one; a reply makes it one more, up to all of them, and a time-out halves it. 1 = as many as there are slots, whatever becomes of them', parse: decimal(0, 1) }),
  releaseWaitMs: required('TREADLE_RELEASE_WAIT_MS', 30_000, { meaning: 'how long runs of an agent version that needs what no worker has (a function, a server, a model) wait for one that has it, before they go on without', parse: wholeNumber(0, 3_600_000) }),
  breakerOpenMs: required('TREADLE_BREAKER_OPEN_MS', 10_000, { meaning: 'how long a breaker stays open before the first probe; doubles with each opening in a row, up to twelve times as long', parse: wholeNumber(100, 3_600_000) }),
  poisonLimit: required('TREADLE_POISON_LIMIT', 3, { meaning: 'deliveries of a run in a row that may kill their worker before the run ends as poisoned', parse: wholeNumber(1, 1000) }),
  drainTimeoutMs: required('TREADLE_DRAIN_TIMEOUT_MS', 25_000, { meaning: 'how long a stopping worker lets its turns finish', parse: wholeNumber(0, 3_600_000) }),
  retentionHours: required('TREADLE_RETENTION_H', 24, { meaning: 'hours an ended run stays in Redis, from when the archive has all of it', parse: decimal(0, 87_600) }),
  usageDays: required('TREADLE_USAGE_DAYS', 100, { meaning: 'days that Redis keeps what runs have used, for GET /v1/usage', parse: wholeNumber(1, 3660) }),
  archiveBacklog: required('TREADLE_ARCHIVE_BACKLOG', 1_000_000, { meaning: 'events that may wait for the archive; above that no new runs are taken (503). 0 = no bound but Redis\' memory', parse: wholeNumber(0, 1_000_000_000_000) }),
  webhookSecret: secret('TREADLE_WEBHOOK_SECRET', { meaning: 'signs webhooks to addresses that no endpoint of the configuration has: whsec_ and base64 of 24 to 64 bytes', parse: webhookSecretForm }),
  webhookPreviousSecret: secret('TREADLE_WEBHOOK_PREVIOUS_SECRET', { meaning: 'while receivers change over: webhooks are signed with both', parse: webhookSecretForm }),
  webhookRetryMs: required('TREADLE_WEBHOOK_RETRY_MS', 5000, { meaning: 'wait before a webhook that failed is sent again; the ten waits grow with it, up to 7200 times as long (10 h)', parse: wholeNumber(1, 60_000) }),
  webhookTimeoutMs: required('TREADLE_WEBHOOK_TIMEOUT_MS', 15_000, { meaning: 'how long one attempt of a webhook may take', parse: wholeNumber(100, 120_000) }),
  auth: required('TREADLE_AUTH', 'off', { meaning: 'keys: API keys are asked for; off is allowed on loopback alone', parse: oneOf('off', 'keys') }),
  adminKey: secret('TREADLE_ADMIN_KEY', { meaning: 'API key of tenant default, scope admin', parse: tokenForm }),
  keysFile: optional('TREADLE_KEYS_FILE', { meaning: 'JSON list of {key_sha256, tenant, scopes, expires_at?, name?}', parse: anyText }),
  logLevel: required('LOG_LEVEL', 'info', { meaning: 'least level that is logged', parse: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent') }),
  otelDisabled: required('OTEL_SDK_DISABLED', 'false', { meaning: 'true: no traces, whatever else is set', parse: oneOf('true', 'false') }),
  otelTracesExporter: optional('OTEL_TRACES_EXPORTER', { meaning: 'otlp: send traces; none: do not; unset: where one of the two addresses is set', parse: oneOf('otlp', 'none') }),
  otelEndpoint: optional('OTEL_EXPORTER_OTLP_ENDPOINT', { meaning: 'OTLP/HTTP collector, without /v1/traces', parse: httpUrl }),
  otelTracesEndpoint: optional('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', { meaning: 'where traces alone go, the whole address', parse: httpUrl }),
  otelProtocol: required('OTEL_EXPORTER_OTLP_PROTOCOL', 'http/protobuf', { meaning: 'how spans are written', parse: oneOf('http/protobuf', 'http/json') }),
  otelTracesProtocol: optional('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', { meaning: 'the same, of traces alone', parse: oneOf('http/protobuf', 'http/json') }),
  otelHeaders: secret('OTEL_EXPORTER_OTLP_HEADERS', { meaning: 'headers for the collector: name=value, with commas between', parse: headerList }),
  otelTracesHeaders: secret('OTEL_EXPORTER_OTLP_TRACES_HEADERS', { meaning: 'the same, of traces alone', parse: headerList }),
  otelServiceName: optional('OTEL_SERVICE_NAME', { meaning: 'service.name of the spans; unset = treadle-api, treadle-worker', parse: anyText }),
  otelSampler: required('OTEL_TRACES_SAMPLER', 'parentbased_always_on', { meaning: 'which traces are kept', parse: oneOf('always_on', 'always_off', 'traceidratio', 'parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio') }),
  otelSamplerArg: required('OTEL_TRACES_SAMPLER_ARG', 1, { meaning: 'the part of them, for the two with a ratio', parse: decimal(0, 1) }),
  otelCaptureContent: required('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'false', { meaning: 'true: spans hold what users, models and tools said', parse: oneOf('true', 'false') }),
  otelScheduleDelayMs: required('OTEL_BSP_SCHEDULE_DELAY', 5000, { meaning: 'how long spans are gathered, ms', parse: wholeNumber(1, 3_600_000) }),
  otelMaxQueueSize: required('OTEL_BSP_MAX_QUEUE_SIZE', 2048, { meaning: 'spans that may wait to be sent; more are dropped', parse: wholeNumber(1, 1_000_000) }),
  otelMaxBatchSize: required('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, { meaning: 'spans sent at once', parse: wholeNumber(1, 1_000_000) }),
  otelExportTimeoutMs: required('OTEL_BSP_EXPORT_TIMEOUT', 30_000, { meaning: 'how long sending them may take, ms', parse: wholeNumber(1, 3_600_000) }),
  url: optional('TREADLE_URL', { meaning: 'for the CLI: API of a server elsewhere', parse: httpUrl }),
  apiKey: secret('TREADLE_API_KEY', { meaning: 'for the CLI: API key of that server', parse: tokenForm }),
};

type ValueOf<Row> = Row extends Variable<infer T, infer Default> ? T | Default : never;
type Table = typeof environmentTable;

/** One value per row, typed. */
export type TableValues = { readonly [Key in keyof Table]: ValueOf<Table[Key]> };
