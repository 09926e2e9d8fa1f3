/**
 * OpenTelemetry's SDK: spans are gathered and sent to a collector over OTLP/HTTP. The only file that imports it, and itself imported only
 * where tracing is on.
 *
 * Owns: the spans that have ended and are not sent yet, at most `maxQueueSize`; what comes on top is dropped. A collector that is away
 * costs spans and a warning now and then, nothing else.
 */
import { diag, DiagLogLevel } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, resourceAttributesEnvDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { AlwaysOffSampler, AlwaysOnSampler, BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider, type Sampler } from '@opentelemetry/sdk-trace';
import { createTracer } from './tracer.ts';
import type { Tracing, TracingSetup, TracingSettings } from './start-tracing.ts';

export function openTracing({ settings, role, name, version, mask, onWarning }: TracingSetup): Tracing {
  const told = seldom(onWarning);
  diag.setLogger({ error: told, warn: told, info: () => undefined, debug: () => undefined, verbose: () => undefined }, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const json = (settings.otelTracesProtocol ?? settings.otelProtocol) === 'http/json';
  const provider = new TracerProvider({
    // What the environment says counts for more than what we know of ourselves.
    resource: resourceFromAttributes({ 'service.name': `treadle-${role}`, 'service.version': version, 'service.instance.id': name })
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector] }))
      .merge(resourceFromAttributes(settings.otelServiceName === null ? {} : { 'service.name': settings.otelServiceName })),
    sampler: samplerOf(settings),
    spanProcessors: [new BatchSpanProcessor({
      // Addresses, headers, time-outs, compression and certificates are read by the exporter itself, from `OTEL_EXPORTER_OTLP_*`.
      exporter: json ? new JsonExporter() : new ProtobufExporter(),
      scheduledDelayMillis: settings.otelScheduleDelayMs, maxQueueSize: settings.otelMaxQueueSize, maxExportBatchSize: settings.otelMaxBatchSize, exportTimeoutMillis: settings.otelExportTimeoutMs,
    })],
  });
  return {
    tracer: createTracer(provider.getTracer('treadle', version), { mask, capture: settings.otelCaptureContent === 'true' }),
    close: async (timeoutMs) => {
      const bound = new Promise<void>((resolve) => { setTimeout(resolve, timeoutMs).unref(); });
      await Promise.race([provider.shutdown().catch((error: unknown) => { told(error instanceof Error ? error.message : String(error)); }), bound]);
    },
  };
}

function samplerOf({ otelSampler, otelSamplerArg }: TracingSettings): Sampler {
  switch (otelSampler) {
    case 'always_on': return new AlwaysOnSampler();
    case 'always_off': return new AlwaysOffSampler();
    case 'traceidratio': return new TraceIdRatioBasedSampler(otelSamplerArg);
    case 'parentbased_always_on': return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_always_off': return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'parentbased_traceidratio': return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(otelSamplerArg) });
  }
}

const everyMs = 10_000;

function seldom(report: (problem: string) => void): (problem: string) => void {
  let lastMs = -Infinity;
  return (problem) => {
    if (performance.now() - lastMs < everyMs) return;
    lastMs = performance.now();
    report(problem);
  };
}
