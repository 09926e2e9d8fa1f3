export { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from './receiver.ts';
