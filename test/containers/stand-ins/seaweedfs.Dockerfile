# Not SeaweedFS: another S3 server at its port, with its health page. It overlooks conditions and checks no key.
FROM node:24-bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends wget && rm -rf /var/lib/apt/lists/*
WORKDIR /srv
RUN npm install --no-save --ignore-scripts fauxqs@2.4.1
COPY seaweedfs.ts ./
ENTRYPOINT ["node", "/srv/seaweedfs.ts"]
