# Two images from one file: `core` (control, replay: no torch) and `torch` (actor, learner).
#   docker build --target core  -t rollstream-core .
#   docker build --target torch -t rollstream-torch .
# A CPU build of torch is taken from wheels/ when one lies there, else from --build-arg TORCH_INDEX_URL, else from the default index.

FROM python:3.11-slim-bookworm AS dependencies
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/rollstream
ENV PATH=/opt/rollstream/bin:$PATH
WORKDIR /source
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > requirements.txt \
 && pip install --quiet --constraint constraints.txt --requirement requirements.txt

FROM dependencies AS package
COPY README.md LICENSE ./
COPY libs libs
COPY services services
RUN pip install --quiet --no-deps .

FROM dependencies AS torch-dependencies
ARG TORCH_INDEX_URL=
RUN --mount=type=bind,source=wheels,target=/wheels \
    pip install --quiet --constraint constraints.txt --find-links /wheels ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} 'torch>=2.6' numpy

FROM torch-dependencies AS torch-package
COPY README.md LICENSE ./
COPY libs libs
COPY services services
RUN pip install --quiet --no-deps .

FROM python:3.11-slim-bookworm AS runtime
RUN groupadd --gid 10001 rollstream && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin rollstream \
 && mkdir -p /data && chown 10001:10001 /data
ENV PATH=/opt/rollstream/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp MPLCONFIGDIR=/tmp/matplotlib OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
    ROLLSTREAM_HOST=0.0.0.0 ROLLSTREAM_PORT=8080 ROLLSTREAM_RUNS_DIR=/data
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=6 \
  CMD ["python", "-m", "rollstream_service.probe", "http://127.0.0.1:8080/healthz"]

FROM runtime AS core
COPY --from=package /opt/rollstream /opt/rollstream
CMD ["python", "-m", "rollstream_control"]

FROM runtime AS torch
COPY --from=torch-package /opt/rollstream /opt/rollstream
CMD ["python", "-m", "rollstream_learner"]
