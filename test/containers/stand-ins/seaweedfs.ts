/** Answers /healthz, and passes everything else to the S3 server behind it. */
import { createServer, request } from 'node:http';
import { startFauxqs } from 'fauxqs';

const { port } = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
createServer((incoming, outgoing) => {
  if (incoming.url === '/healthz') {
    outgoing.end();
    return;
  }
  const { method, url: path, headers } = incoming;
  incoming.pipe(request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  }));
}).listen(8333);
process.on('SIGTERM', () => { process.exit(0); });
