# The image of Countersign: docs/containers.md says how to build and run it.

ARG NODE_IMAGE=node:26-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
# The repository is not sent along: docker build --build-arg COMMIT=$(git rev-parse HEAD)
ARG COMMIT=
RUN npm run build
# What runs needs neither the tools of the build nor the copy of Node.js that the tests bring along, but the library of the OpenID
# Connect issuer, in the one version that fits.
RUN npm install --save-prod --save-exact --omit=dev --omit=optional \
  "oidc-provider@$(node -p "require('./package.json').peerDependencies['oidc-provider']")" \
  "pg@$(node -p "require('./package.json').peerDependencies.pg")"

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="Countersign"
LABEL org.opencontainers.image.description="Wallet-signature sign-in and cross-device approval"
LABEL org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 COUNTERSIGN_STORE=sqlite:/data/countersign.db
WORKDIR /app
COPY --from=build /build/package.json /build/LICENSE ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
# The one folder that is written to, and only with SQLite: by the user node, or, as OpenShift has it, any user of
# group 0.
RUN install -d -o node -g 0 -m 0770 /data
VOLUME /data
# The user node by its number, so that Kubernetes can see that it is not root.
USER 1000:1000
EXPOSE 8080
# An answer is all that counts: with TLS on the port, a request without it gets one as well.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/healthz').then(({ status }) => process.exit(status < 500 ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
# docs/operations.md, "Start the service", says what the option is for.
ENTRYPOINT ["node", "--min-semi-space-size=16", "dist/src/main.js"]
