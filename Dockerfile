# The monitor, the command line and the demo's members in one image: `docker build -t group-monitor .`
# Built with all that set-up brings; what runs has the wheel, the libraries it asks for, and the jars of Kafka. Packages and
# jars are those of the lock files.
FROM python:3.12.11-slim-bookworm@sha256:519591d6871b7bc437060736b9f7456b8731f1499a57e22e6c285135ae657bf7 AS base
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

FROM base AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# What is fetched depends on these files only, so a change of the code fetches nothing.
COPY Makefile pyproject.toml requirements.lock requirements.run.lock requirements.extras.lock ./
COPY conf/ivy.xml conf/ivysettings.xml conf/jars.sha256 conf/
COPY streaming/__init__.py streaming/
COPY streaming/base/__init__.py streaming/base/atomic_files.py streaming/base/errors.py streaming/base/places.py streaming/base/
COPY streaming/spark/__init__.py streaming/spark/cds_archive.py streaming/spark/java.py streaming/spark/
RUN make setup
# With requirements.extras.lock the image can sign for Amazon MSK and export by OTLP: `--build-arg LOCK=…`.
ARG LOCK=requirements.run.lock
RUN python -m venv /opt/group-monitor \
    && /opt/group-monitor/bin/pip install --no-cache-dir --require-hashes -r "$LOCK"

COPY . .
ENV XDG_CACHE_HOME=/opt/group-monitor/cache
RUN make package \
    && /opt/group-monitor/bin/pip install --no-cache-dir --no-deps --no-index dist/*.whl \
    && /opt/group-monitor/bin/python -m group_monitor.jars --from .cache/jars/kafka \
    && /opt/group-monitor/bin/python -m group_monitor.classes \
    && /opt/group-monitor/bin/pip uninstall --yes pip

FROM base
LABEL org.opencontainers.image.title="group-monitor" \
      org.opencontainers.image.description="Live monitoring of Kafka groups from the group coordinator's own log" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.licenses="Apache-2.0 AND MIT"
# A volume takes over the owner of the directory it is put on. Platforms that give user ids of their own (OpenShift) give
# them the group 0.
RUN groupadd --gid 10001 monitor \
    && useradd --create-home --uid 10001 --gid 10001 monitor \
    && install -d -m 0770 -o 10001 -g 0 /var/lib/group-monitor
COPY --from=build /opt/group-monitor /opt/group-monitor
COPY conf/local.yaml /etc/group-monitor/
ENV XDG_CACHE_HOME=/opt/group-monitor/cache XDG_STATE_HOME=/var/lib
# A number, by which Kubernetes knows that it is not root.
USER 10001
WORKDIR /var/lib/group-monitor

EXPOSE 9464
# Spark takes its time to start; until then there is no answer.
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=6 \
    CMD ["/opt/group-monitor/bin/python", "-S", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:9464/healthz', timeout=5)"]
ENTRYPOINT ["/opt/group-monitor/bin/group-monitor"]
CMD ["run", "--config", "/etc/group-monitor/local.yaml"]
