import { describe, expect, test } from 'vitest';
import { environmentSecrets, readEnvironment } from './read.ts';
import { environmentTable } from './table.ts';

function problems(env: Record<string, string>): Record<string, string> {
  const outcome = readEnvironment(env);
  return outcome.type === 'ok' ? {} : Object.fromEntries(outcome.problems.map((each) => [each.name, each.problem]));
}

function settings(env: Record<string, string>) {
  const outcome = readEnvironment(env);
  if (outcome.type === 'invalid') throw new Error(JSON.stringify(outcome.problems));
  return outcome.settings;
}

describe('the environment', () => {
  test('has defaults for everything that needs one', () => {
    expect(settings({})).toMatchObject({
      prefix: 'treadle', shards: 1, archiveMode: 'async', host: '127.0.0.1', port: 8080, metricsPort: 9464, workerConcurrency: 50,
      breakerVolume: 20, breakerOpenMs: 10_000, modelSlowStart: 0.5, releaseWaitMs: 30_000, leaseMs: 8000, drainTimeoutMs: 25_000, retentionHours: 24, archiveBacklog: 1_000_000, auth: 'off', logLevel: 'info', redisUrl: null, s3Bucket: null, otelDisabled: 'false', otelTracesExporter: null,
      otelEndpoint: null, otelSampler: 'parentbased_always_on', otelSamplerArg: 1, otelCaptureContent: 'false',
    });
  });

  test('an empty value counts as unset', () => {
    expect(settings({ PORT: '', S3_BUCKET: '  ' })).toMatchObject({ port: 8080, s3Bucket: null });
  });

  test('names every bad variable at once, with what was expected, and shows no value', () => {
    const env = {
      REDIS_URL: 'http://nope', TREADLE_SHARDS: '17', S3_ENDPOINT: 'minio:9000', ARCHIVE_MODE: 'sync', PORT: '-1', METRICS_PORT: '1e3',
      WORKER_CONCURRENCY: '0', TREADLE_LEASE_MS: '8s', TREADLE_RETENTION_H: 'day', TREADLE_AUTH: 'on', TREADLE_ADMIN_KEY: 'short', LOG_LEVEL: 'loud',
      TREADLE_PREFIX: 'a b', TREADLE_DRAIN_TIMEOUT_MS: '-5', OLLAMA_HOST: 'a b', HOST: 'a:b/c', TREADLE_URL: 'x', S3_BUCKET: '/', S3_PREFIX: '/a', S3_REGION: 'a b',
      TREADLE_API_KEY: 'a b c d e f g', OTEL_SDK_DISABLED: 'yes', OTEL_TRACES_EXPORTER: 'zipkin', OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization', OTEL_TRACES_SAMPLER: 'some', OTEL_TRACES_SAMPLER_ARG: '2', OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: '1',
    };
    const found = problems(env);
    expect(Object.keys(found).sort()).toEqual(Object.keys(env).sort());
    for (const problem of Object.values(found)) expect(problem).toMatch(/^expected /);
    expect(found.PORT).toBe('expected a whole number from 0 to 65535');
    expect(JSON.stringify(found)).not.toContain('short');
  });

  test.each([
    'redis://127.0.0.1:6379', 'rediss://user:pw@host:6380/2', 'redis-sentinel://h1:26379,h2/master', 'redis-cluster://h1,h2:7000', 'redis-sentinel://:pw@h1,h2/m',
    'redis-cluster://[::1]:7000,h2/',
  ])('takes %s as Redis', (url) => {
    expect(settings({ REDIS_URL: url }).redisUrl).toBe(url);
  });

  test.each([
    'redis-sentinel://h1,h2', 'redis://', 'redis-cluster://', 'h1:6379', 'redis-cluster://h1:65536', 'redis-cluster://h1/1', 'redis-sentinel://h1,/m', 'redis-cluster://:%z@h1',
  ])('does not take %s as Redis', (url) => {
    expect(Object.keys(problems({ REDIS_URL: url }))).toEqual(['REDIS_URL']);
  });

  test('takes Ollama\'s host as Ollama does', () => {
    expect(settings({ OLLAMA_HOST: 'https://o.example/' }).ollamaHost).toBe('https://o.example');
    expect(settings({ OLLAMA_HOST: '10.1.2.3' }).ollamaHost).toBe('http://10.1.2.3:11434');
    expect(settings({ OLLAMA_HOST: 'gpu:8000' }).ollamaHost).toBe('http://gpu:8000');
  });

  test('listens beyond loopback only with keys', () => {
    expect(Object.keys(problems({ HOST: '0.0.0.0' }))).toEqual(['HOST']);
    expect(Object.keys(problems({ HOST: '::', TREADLE_AUTH: 'off' }))).toEqual(['HOST']);
    expect(settings({ HOST: '0.0.0.0', TREADLE_AUTH: 'keys' }).host).toBe('0.0.0.0');
    for (const host of ['localhost', '::1', '127.1.2.3']) expect(settings({ HOST: host }).host).toBe(host);
  });

  test('half a key, and an endpoint without a bucket, are problems', () => {
    expect(Object.keys(problems({ S3_ACCESS_KEY_ID: 'a' }))).toEqual(['S3_SECRET_ACCESS_KEY']);
    expect(Object.keys(problems({ S3_ENDPOINT: 'http://127.0.0.1:9000' }))).toEqual(['S3_BUCKET']);
  });

  test('takes what OpenTelemetry takes, and leaves alone what only its exporter reads', () => {
    expect(settings({ OTEL_SERVICE_NAME: 'x', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/', OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25', OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' }))
      .toMatchObject({ otelServiceName: 'x', otelEndpoint: 'http://c:4318', otelSampler: 'traceidratio', otelSamplerArg: 0.25 });
  });

  test('knows which values must never be shown', () => {
    expect(environmentSecrets({ TREADLE_ADMIN_KEY: 'tk_secret1', PORT: '1', S3_SECRET_ACCESS_KEY: '' })).toEqual(['tk_secret1']);
    expect(environmentSecrets({ OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc%2Bd, x-key=plain' }))
      .toEqual(['authorization=Bearer%20abc%2Bd, x-key=plain', 'Bearer%20abc%2Bd', 'Bearer abc+d', 'abc+d', 'plain', 'plain']);
  });

  test('has each name once, and a meaning for each', () => {
    const rows = Object.values(environmentTable);
    expect(new Set(rows.map((row) => row.name)).size).toBe(rows.length);
    expect(rows.every((row) => row.meaning.length > 10)).toBe(true);
  });
});
