# syntax=docker/dockerfile:1
# The image runs `clew` as a user without rights; everything it keeps is in /data.

FROM node:22.21-bookworm-slim AS build
WORKDIR /src
COPY . .
RUN npm ci --no-audit --no-fund && npm pack --pack-destination /tmp

FROM node:22.21-bookworm-slim
COPY --from=build /tmp/clew-*.tgz /tmp/
RUN npm install --global --no-audit --no-fund --omit=dev /tmp/clew-*.tgz \
  && npm cache clean --force \
  && rm -rf /tmp/clew-*.tgz \
  && mkdir /data \
  && chown node:node /data
ENV CLEW_HOME=/data NODE_ENV=production
USER node
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["clew"]
CMD ["start", "--host", "0.0.0.0"]
