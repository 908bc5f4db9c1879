import { randomBytes } from 'node:crypto'
import { now, type Objects, type Stored } from './objects.ts'
import type { PodLogBook } from './pod-logs.ts'

export const IMAGE_DIGEST = `sha256:${'d1'.repeat(32)}`

/** What a test makes happen to a pod. */
export interface PodActs {
  /** No node takes it. */
  unplaced(message: string): void
  pulling(): void
  cannotPull(reason: string, message?: string): void
  waits(reason: string, message: string): void
  run(): void
  ready(): void
  print(text: string): void
  /** The container ends; the kubelet starts it again when told so. */
  crash(end: { exitCode: number; reason?: string; message?: string; startedAgain?: boolean }): void
  evict(): void
  warn(message: string): void
}

/** What most pods do. */
export function comesUp(acts: PodActs, later: (ms: number, work: () => void) => void): void {
  // One after the other: timers of a busy machine come in any order.
  later(5, () => {
    acts.pulling()
    later(10, () => {
      acts.run()
      later(15, acts.ready)
    })
  })
}

export function podActs({
  pod,
  objects,
  logs,
  later,
}: {
  pod: Stored
  objects: Objects
  logs: PodLogBook
  later: (ms: number, work: () => void) => void
}): PodActs {
  const set = (status: object) => {
    if (pod.metadata.deletionTimestamp !== undefined) return
    pod.status = { ...pod.status, ...status }
    objects.touch('pods', pod)
  }
  const { image } = pod.spec.containers[0] as { image: string }
  const container = (fields: object) => {
    const before = pod.status?.containerStatuses?.[0] ?? {
      name: 'agent',
      image,
      imageID: '',
      ready: false,
      restartCount: 0,
      lastState: {},
    }
    return { containerStatuses: [{ ...before, ready: false, ...fields }] }
  }
  const warn = (message: string) => {
    const { namespace, uid, name } = pod.metadata
    const metadata = { namespace, name: `${name}.${randomBytes(8).toString('hex')}` }
    objects.add('events', {
      apiVersion: 'v1',
      kind: 'Event',
      metadata,
      involvedObject: { uid },
      type: 'Warning',
      message,
      lastTimestamp: now(),
    })
  }
  const placed = { conditions: [{ type: 'PodScheduled', status: 'True' }] }
  const waiting = (reason: string, message?: string) => ({
    state: { waiting: { reason, ...(message === undefined ? {} : { message }) } },
  })
  const imageID = `${image.split('@')[0]?.replace(/:[^/:]*$/, '')}@${IMAGE_DIGEST}`
  const running = () => ({ state: { running: { startedAt: now() } }, imageID })
  return {
    unplaced: (message) => set({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] }),
    pulling: () => set({ ...placed, ...container(waiting('ContainerCreating')) }),
    cannotPull: (reason, message) => {
      set({ ...placed, ...container(waiting(reason, message)) })
      if (reason === 'ErrImagePull') warn(`Failed to pull image "${image}": ${message}`)
      warn(`Error: ${reason}`)
    },
    waits: (reason, message) => set({ ...placed, ...container(waiting(reason, message)) }),
    run: () => set({ ...placed, phase: 'Running', ...container(running()) }),
    ready: () => set(container({ ready: true, started: true })),
    print: (text) => logs.print(pod, text),
    crash: ({ exitCode, reason = 'Error', message, startedAgain = false }) => {
      const terminated = { exitCode, reason, ...(message === undefined ? {} : { message }) }
      set(container({ state: { terminated }, imageID }))
      logs.end(pod)
      if (!startedAgain) return
      later(30, () => {
        logs.restart(pod)
        const restartCount = (pod.status.containerStatuses[0].restartCount as number) + 1
        set(container({ ...running(), lastState: { terminated }, restartCount }))
      })
    },
    evict: () => {
      const state = { terminated: { exitCode: 137, reason: 'Error' } }
      set({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory', ...container({ state }) })
    },
    warn,
  }
}
