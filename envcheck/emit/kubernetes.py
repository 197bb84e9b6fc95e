"""`envcheck emit kubernetes`: every node of a cluster judged, as a DaemonSet, and tried, as a Job.

The DaemonSet takes no GPU from anybody: the runtime shows it all of a node's, and a pod is ready
while its node is in order. The Job asks for GPUs as work does, and ends with the status of the test.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.emit import describe
from envcheck.emit.check import IMAGE, checked, shown
from envcheck.errors import UsageError
from envcheck.planner.lock import lock_text

if TYPE_CHECKING:
    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock

DAEMONSET, JOB, LOCK = "daemonset.yaml", "job.yaml", "configmap.yaml"
_ARCHES = {"linux_x86_64": "amd64", "linux_aarch64": "arm64"}
_USER = 10001
"""The user of the images that `envcheck emit dockerfile` describes."""
_SECONDS = 900
"""Between two looks at a node."""


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """`daemonset.yaml`, `job.yaml` and `configmap.yaml`, which holds the lock.

    Raises:
        LockError, UsageError: see `checked`; or no image is named, or the stack needs no GPU.
    """
    checked(lock, options)
    image = _image(options)
    if not describe.has_cuda(lock.stack):
        msg = "the stack of the lock is for the CPU: there are no GPUs to look after"
        raise UsageError(msg)
    gpus = 1 if options.gpus == "all" else int(options.gpus)
    arch = _ARCHES[lock.stack.platform]
    head = f"# Made by envcheck: {describe.frameworks(lock.stack)}, on {describe.machine(lock)}.\n"
    return {
        LOCK: head + _CONFIGMAP + _indented(lock_text(lock)),
        DAEMONSET: head + _DAEMONSET.format(image=image, arch=arch, user=_USER, seconds=_SECONDS),
        JOB: head
        + _JOB.format(
            image=image,
            arch=arch,
            user=_USER,
            gpus=gpus,
            nodes=options.nodes,
            shm=_quantity(options.shm_size),
        ),
    }


def _image(options: Options) -> str:
    if options.image is None:
        msg = (
            "--image: name the image that 'envcheck emit dockerfile' describes, where nodes pull it"
        )
        raise UsageError(msg)
    found = IMAGE.fullmatch(options.image)
    if found is None:
        msg = (
            f"--image: {shown(options.image)} is not an image such as registry.example.org/train:1"
        )
        raise UsageError(msg)
    if found["digest"] is None and found["tag"] in (None, "latest"):
        msg = f"--image: {options.image} names whatever is newest: give a tag or a digest"
        raise UsageError(msg)
    if not 1 <= options.nodes <= 10_000:
        msg = f"--nodes: {options.nodes} is not a number between 1 and 10000"
        raise UsageError(msg)
    return options.image


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def _quantity(size: str) -> str:
    return re.sub(r"g$", "Gi", re.sub(r"m$", "Mi", size))


_CONFIGMAP = """\
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: envcheck-lock
  labels:
    app.kubernetes.io/name: envcheck
data:
  envcheck.lock: |
"""

_DAEMONSET = """\
# A pod is ready while envcheck finds no error on its node; its log says what it found:
#   kubectl get pods --selector app.kubernetes.io/name=envcheck --output wide
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: envcheck
  labels:
    app.kubernetes.io/name: envcheck
    app.kubernetes.io/component: doctor
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: envcheck
      app.kubernetes.io/component: doctor
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 10%
  template:
    metadata:
      labels:
        app.kubernetes.io/name: envcheck
        app.kubernetes.io/component: doctor
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 5
      # The runtime of NVIDIA's container toolkit, which shows GPUs that were not asked for.
      runtimeClassName: nvidia
      nodeSelector:
        kubernetes.io/arch: {arch}
        # Set by NVIDIA's feature discovery.
        nvidia.com/gpu.present: "true"
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
      securityContext:
        runAsNonRoot: true
        runAsUser: {user}
        runAsGroup: {user}
        fsGroup: {user}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: doctor
          image: {image}
          command:
            - /bin/sh
            - -c
            - |
              trap 'exit 0' TERM
              while :; do
                envcheck doctor --require-gpu --no-color --against /etc/envcheck/envcheck.lock
                echo "$?" > /run/envcheck/status
                sleep {seconds} &
                wait "$!"
              done
          env:
            - name: NVIDIA_VISIBLE_DEVICES
              value: all
            - name: NVIDIA_DRIVER_CAPABILITIES
              value: compute,utility
            - name: HOME
              value: /tmp
          # 0: nothing found. 1: findings. 3: nothing could be determined, which is no alarm.
          readinessProbe:
            exec:
              command:
                - /bin/sh
                - -c
                - case "$(cat /run/envcheck/status)" in 0 | 3) ;; *) exit 1 ;; esac
            initialDelaySeconds: 5
            periodSeconds: 15
            failureThreshold: 1
          resources:
            requests:
              cpu: 10m
              memory: 64Mi
            limits:
              memory: 512Mi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: lock
              mountPath: /etc/envcheck
              readOnly: true
            - name: run
              mountPath: /run/envcheck
            - name: tmp
              mountPath: /tmp
      volumes:
        - name: lock
          configMap:
            name: envcheck-lock
        - name: run
          emptyDir:
            medium: Memory
            sizeLimit: 1Mi
        - name: tmp
          emptyDir:
            sizeLimit: 256Mi
"""

_JOB = """\
# A tiny training step on {nodes} node(s), with {gpus} GPU(s) each, one pod a node. A node that fails does not stop the
# others, and is not tried again:
#   kubectl wait --for=condition=complete job/envcheck-smoke
---
apiVersion: batch/v1
kind: Job
metadata:
  name: envcheck-smoke
  labels:
    app.kubernetes.io/name: envcheck
    app.kubernetes.io/component: smoke
spec:
  completionMode: Indexed
  completions: {nodes}
  parallelism: {nodes}
  backoffLimitPerIndex: 0
  activeDeadlineSeconds: 3600
  ttlSecondsAfterFinished: 86400
  podFailurePolicy:
    rules:
      # A node that is drained meanwhile says nothing about its GPUs.
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
      - action: FailIndex
        onExitCodes:
          containerName: smoke
          operator: NotIn
          values: [0]
  template:
    metadata:
      labels:
        app.kubernetes.io/name: envcheck
        app.kubernetes.io/component: smoke
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      restartPolicy: Never
      nodeSelector:
        kubernetes.io/arch: {arch}
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app.kubernetes.io/name: envcheck
                  app.kubernetes.io/component: smoke
      securityContext:
        runAsNonRoot: true
        runAsUser: {user}
        runAsGroup: {user}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: smoke
          image: {image}
          command: [envcheck, smoke, --no-color]
          # What it found stands in the status of a pod that failed.
          terminationMessagePolicy: FallbackToLogsOnError
          env:
            - name: HOME
              value: /tmp
          resources:
            requests:
              cpu: "1"
              memory: 2Gi
            limits:
              nvidia.com/gpu: {gpus}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: shared-memory
              mountPath: /dev/shm
            - name: tmp
              mountPath: /tmp
      volumes:
        - name: shared-memory
          emptyDir:
            medium: Memory
            sizeLimit: {shm}
        - name: tmp
          emptyDir: {{}}
"""
