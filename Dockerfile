# The monitor, the command line and the demo's members in one image: `docker build -t group-monitor .`
# Only what is needed comes along (.dockerignore); packages and jars are those of the lock files.
FROM python:3.12.11-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends make openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 monitor \
    && install -d -o monitor -g monitor /app
USER monitor
WORKDIR /app

# What is fetched depends on these files only, so a change of the code fetches nothing.
COPY --chown=monitor Makefile pyproject.toml requirements.lock ./
COPY --chown=monitor conf/ivy.xml conf/ivysettings.xml conf/
COPY --chown=monitor streaming/__init__.py streaming/errors.py streaming/java.py streaming/
RUN make setup

COPY --chown=monitor . .
RUN make classes
# A volume takes over the owner of the directory it is put on.
RUN mkdir -p .cache/state

EXPOSE 9464
ENTRYPOINT [".venv/bin/group-monitor"]
CMD ["run", "--config", "conf/local.yaml"]
