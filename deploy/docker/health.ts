/**
 * Whether the process of this container lives: the API at `PORT`, a worker at `METRICS_PORT`; each answers /healthz. One image is both, so
 * both are asked, and one that answers is enough. Exit code 0 or 1, as HEALTHCHECK wants it.
 */
const ports = [process.env.PORT ?? '8080', process.env.METRICS_PORT ?? '9464'];
const answers = await Promise.all(ports.map((port) => fetch(`http://127.0.0.1:${port}/healthz`).then((response) => response.ok, () => false)));
process.exitCode = answers.includes(true) ? 0 : 1;
