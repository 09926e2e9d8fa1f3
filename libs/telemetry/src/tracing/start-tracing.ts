/** Whether spans are made at all. Where they are not, nothing of OpenTelemetry's SDK is loaded. */
import type { Tracer } from '@treadle/engine';

/** As the environment has them. */
export interface TracingSettings {
  readonly otelDisabled: 'true' | 'false';
  readonly otelTracesExporter: 'otlp' | 'none' | null;
  readonly otelEndpoint: string | null;
  readonly otelTracesEndpoint: string | null;
  readonly otelProtocol: 'http/protobuf' | 'http/json';
  readonly otelTracesProtocol: 'http/protobuf' | 'http/json' | null;
  readonly otelServiceName: string | null;
  readonly otelSampler: 'always_on' | 'always_off' | 'traceidratio' | 'parentbased_always_on' | 'parentbased_always_off' | 'parentbased_traceidratio';
  /** 0 to 1. */
  readonly otelSamplerArg: number;
  readonly otelCaptureContent: 'true' | 'false';
  readonly otelScheduleDelayMs: number;
  readonly otelMaxQueueSize: number;
  readonly otelMaxBatchSize: number;
  readonly otelExportTimeoutMs: number;
}

export interface TracingSetup {
  readonly settings: TracingSettings;
  readonly role: 'api' | 'worker';
  /** Of this process. */
  readonly name: string;
  readonly version: string;
  /** Takes known secrets out of a text. */
  readonly mask: (text: string) => string;
  /** Told now and then when spans cannot be sent. */
  readonly onWarning: (problem: string) => void;
}

export interface Tracing {
  readonly tracer: Tracer;
  /** Sends what has ended, for no longer than that. Nothing is sent afterwards. Never rejects. */
  close(timeoutMs: number): Promise<void>;
}

export function tracingIsOn({ otelDisabled, otelTracesExporter, otelEndpoint, otelTracesEndpoint }: TracingSettings): boolean {
  if (otelDisabled === 'true' || otelTracesExporter === 'none') return false;
  return otelTracesExporter === 'otlp' || otelEndpoint !== null || otelTracesEndpoint !== null;
}

/** Null where nobody traces. */
export async function startTracing(setup: TracingSetup): Promise<Tracing | null> {
  if (!tracingIsOn(setup.settings)) return null;
  const { openTracing } = await import('./sdk.ts');
  return openTracing(setup);
}
