# Two images from one file: `core` (control, replay: no torch) and `torch` (actor, learner; ONNX Runtime for actors that see images).
#
#   docker build --target core  -t rollstream-core:0.1.0 .
#   docker build --target torch -t rollstream-torch:0.1.0 .
#
# torch comes from a wheel in wheels/ when one lies there, else from --build-arg TORCH_INDEX_URL (for a CPU build
# https://download.pytorch.org/whl/cpu), else from the default index, which has CUDA builds of several GB.
#
#   base ─▶ runtime ─▶ core              dependencies, package and torch-dependencies only give folders to the images,
#              └─────▶ torch             so that no compiler, cache or wheel is in one, and both share their layers
#
# Plain Dockerfile syntax: builds with Docker 20.10 and later, with and without BuildKit.

FROM python:3.11-slim-bookworm AS base

FROM base AS dependencies
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv --without-pip /opt/rollstream
WORKDIR /source
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > requirements.txt \
 && pip --python /opt/rollstream/bin/python install --quiet --constraint constraints.txt --requirement requirements.txt

FROM dependencies AS package
COPY LICENSE ./
COPY libs libs
COPY services services
RUN touch README.md && pip --python /opt/rollstream/bin/python install --quiet --no-deps --prefix /opt/package .

# A root file system that nobody writes to: everything that is written goes to /tmp and /data.
FROM base AS runtime
RUN groupadd --gid 10001 rollstream \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin rollstream \
 && mkdir /data && chown 10001:10001 /data
ENV PATH=/opt/rollstream/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp USER=rollstream MPLCONFIGDIR=/tmp/matplotlib OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
    ROLLSTREAM_HOST=0.0.0.0 ROLLSTREAM_PORT=8080 ROLLSTREAM_RUNS_DIR=/data
COPY --from=dependencies /opt/rollstream /opt/rollstream
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=6 \
  CMD ["python", "-m", "rollstream_service.probe", "http://127.0.0.1:8080/healthz"]

FROM runtime AS core
COPY --from=package /opt/package /opt/rollstream
CMD ["python", "-m", "rollstream_control"]

FROM dependencies AS torch-dependencies
ARG TORCH_INDEX_URL=
COPY wheels /wheels
RUN pip --python /opt/rollstream/bin/python install --quiet --prefix /opt/torch --constraint constraints.txt \
    --find-links /wheels ${TORCH_INDEX_URL:+--extra-index-url "$TORCH_INDEX_URL"} 'torch>=2.6' 'onnx>=1.17' 'onnxruntime>=1.20' \
 && cd /opt/torch/lib/python3*/site-packages/torch && rm -rf test && find bin -type f ! -name torch_shm_manager -delete

FROM runtime AS torch
COPY --from=torch-dependencies /opt/torch /opt/rollstream
COPY --from=package /opt/package /opt/rollstream
CMD ["python", "-m", "rollstream_learner"]
