# The images: targets `agent` and `loader`.  docs/image.md tells how to build, pin and run them.
# Pin the base in production: --build-arg BASE_DIGEST=sha256:...
ARG BASE=python:3.13-slim-trixie
ARG BASE_DIGEST=""

FROM ${BASE}${BASE_DIGEST:+@}${BASE_DIGEST} AS tools
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
COPY requirements-build.lock ./
RUN python3 -m venv /build \
    && /build/bin/python -m pip install --only-binary :all: --require-hashes -r requirements-build.lock

# The wheel of both packages; the version is the builder's word, for there is no checkout here.
FROM tools AS wheel
ARG VERSION=0.1.0
COPY pyproject.toml README.md LICENSE ./
COPY jostler jostler
COPY loader loader
RUN SETUPTOOLS_SCM_PRETEND_VERSION_FOR_JOSTLER="${VERSION}" \
    /build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

# The native module, which is optional: --build-arg NATIVE=no leaves it out.  It is compiled for the platform
# of the build; docs/image.md tells how for another one.  Crates are held to Cargo.lock's checksums.
FROM tools AS native
ARG NATIVE=yes
WORKDIR /src/native
COPY native ./
# hadolint ignore=DL3008
RUN mkdir /wheels \
    && if [ "${NATIVE}" = yes ]; then apt-get update \
    && apt-get install -y --no-install-recommends cargo gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/* \
    && PATH="/build/bin:${PATH}" /build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    ; fi

FROM tools AS agent-venv
COPY requirements-agent.lock ./
RUN python3 -m venv --without-pip /opt/venv \
    && /build/bin/python -m pip --python /opt/venv/bin/python install --no-compile \
        --only-binary :all: --require-hashes -r requirements-agent.lock
COPY --from=wheel /wheels /wheels
COPY --from=native /wheels /wheels
RUN /build/bin/python -m pip --python /opt/venv/bin/python install --no-compile --no-deps /wheels/*.whl \
    && rm -r /opt/venv/lib/python3*/site-packages/loader /opt/venv/bin/jostler-load /opt/venv/bin/jostler-query /opt/venv/bin/jostler-sql \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/venv/lib

# pyspark comes as source only: its wheel is built with the locked setuptools, not with a fetched one.
# The jars that go are of machine learning, streaming state, a Hive metastore of its own, Spark Connect, the Scala
# shell and other systems: -Xlog:class+load names none of them in a load, local or on Kubernetes.
FROM tools AS loader-venv
COPY requirements-loader.lock ./
RUN /build/bin/python -m pip wheel --no-deps --no-build-isolation --require-hashes \
        --wheel-dir /dependencies -r requirements-loader.lock
COPY --from=wheel /wheels /wheels
COPY --from=native /wheels /wheels
# hadolint ignore=DL3003
RUN python3 -m venv --without-pip /opt/venv \
    && /build/bin/python -m pip --python /opt/venv/bin/python install --no-compile --no-deps \
        --no-index /dependencies/*.whl /wheels/*.whl \
    && cd /opt/venv/lib/python3*/site-packages/pyspark/jars \
    && rm -f rocksdbjni-* spark-connect_* breeze* spire* cats-kernel_* algebra_* lapack-* blas-* arpack* \
        JTransforms-* scala-compiler-* jline-* derby* datanucleus-* netty-transport-native-kqueue-* \
        netty-tcnative-*-osx-* netty-tcnative-*-windows-* \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/venv/lib \
    && ln -s /opt/venv/lib/python3*/site-packages/pyspark /opt/spark \
    && mkdir /opt/spark/conf /opt/spark/work-dir \
    && chmod 1777 /opt/spark/work-dir

# What both images share: the interpreter without its installers, and with its bytecode, which nobody can
# write later: compiling the standard library at each start would take a second of CPU.
FROM ${BASE}${BASE_DIGEST:+@}${BASE_DIGEST} AS runtime
RUN rm -rf /usr/local/lib/python3*/site-packages/pip* /usr/local/lib/python3*/ensurepip \
        /usr/local/bin/pip* /usr/lib/python3*/ensurepip /usr/share/python-wheels \
    && python3 -m compileall -q --invalidation-mode unchecked-hash -x '/(tests?|idlelib|lib2to3|turtledemo)/' \
        "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

FROM runtime AS loader
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends default-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && echo 'spark:x:185:0:spark:/tmp:/usr/sbin/nologin' >> /etc/passwd \
    && echo 'jostler:x:10001:10000:jostler:/tmp:/usr/sbin/nologin' >> /etc/passwd \
    && echo 'jostler:x:10000:' >> /etc/group
COPY --from=loader-venv /opt/ /opt/
COPY images/spark_entrypoint.py /opt/jostler/entrypoint.py
COPY loader/job.py /opt/jostler/job.py
ARG VERSION=0.1.0
ARG COMMIT=unknown
ARG CREATED=""
ARG SOURCE=""
ARG BASE
ARG BASE_DIGEST
RUN --mount=type=bind,source=images/sbom.py,target=/sbom.py \
    python3 /sbom.py jostler-loader "${VERSION}" /opt/venv > /opt/jostler/sbom.cdx.json
ENV JOSTLER_COMMIT=${COMMIT} SPARK_HOME=/opt/spark PYSPARK_PYTHON=/opt/venv/bin/python3
LABEL org.opencontainers.image.title="jostler-loader" \
      org.opencontainers.image.description="Loads bundles of measurement files into BigQuery" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.documentation="${SOURCE}/blob/${COMMIT}/docs/image.md" \
      org.opencontainers.image.base.name="${BASE}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}"
WORKDIR /tmp
USER 185:0
ENTRYPOINT ["python3", "/opt/jostler/entrypoint.py"]

# The agent's root without shell, package manager and programs.  What runs here is said without a shell.
FROM runtime AS agent-root
COPY --from=agent-venv /opt/venv /opt/venv
COPY images/sbom.py images/strip.py /
ARG VERSION=0.1.0
RUN mkdir /opt/jostler \
    && python3 /sbom.py jostler "${VERSION}" /opt/venv > /opt/jostler/sbom.cdx.json \
    && rm /sbom.py
RUN ["python3", "/strip.py"]

# Last, so that a build without --target makes the agent.  One layer, for removed files stay in the base's.
FROM scratch AS agent
# hadolint ignore=DL3067
COPY --from=agent-root / /
ARG VERSION=0.1.0
ARG COMMIT=unknown
ARG CREATED=""
ARG SOURCE=""
ARG BASE
ARG BASE_DIGEST
# One heap for all threads: the agent takes 15 MB less, and no more CPU (docs/performance.md, "Memory").
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    MALLOC_ARENA_MAX=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    JOSTLER_COMMIT=${COMMIT}
LABEL org.opencontainers.image.title="jostler" \
      org.opencontainers.image.description="Carries measurement files from a spool directory to a bucket" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.documentation="${SOURCE}/blob/${COMMIT}/docs/image.md" \
      org.opencontainers.image.base.name="${BASE}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}"
WORKDIR /
USER 10001:10000
HEALTHCHECK --interval=30s --timeout=20s --start-period=30s --retries=3 \
    CMD ["jostler", "status", "-health"]
ENTRYPOINT ["jostler"]
