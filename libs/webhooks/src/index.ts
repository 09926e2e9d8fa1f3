export { createWebhookSender, type WebhookEndpoint, type WebhookSecrets, type WebhookSenderOptions } from './sender.ts';
export { sign } from './sign.ts';
export { targetProblem, type TargetRules } from './target.ts';
