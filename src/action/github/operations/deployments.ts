import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import { deploymentSchema, statusSchema } from '../answers.ts'
import { GithubFailure } from '../failure.ts'
import type { DeploymentRecord, DeploymentState, Github, NewDeployment } from '../github.ts'
import { readList } from './list.ts'
import type { Repository } from './repository.ts'

const ROUTE = '/repos/{owner}/{repo}/deployments'
/** GitHub's own limit of a description. */
const DESCRIPTION_MAX = 140
/** How often a record is asked for when no answer tells whether it was made. */
const CREATE_ATTEMPTS = 3
const READ = 'deployments: read'
const WRITE = 'deployments: write'

type Operations = Pick<Github, 'createDeployment' | 'createDeploymentStatus' | 'listDeployments' | 'listDeploymentStatuses'>

export function deploymentOperations({ owner, repo, send }: Repository): Operations {
  const here = { owner, repo }
  const listDeployments: Operations['listDeployments'] = async ({ max, ...filter }, signal) => {
    const request = {
      operation: 'listing deployment records',
      permission: READ,
      route: `GET ${ROUTE}`,
      schema: deploymentSchema,
    } as const
    const records = await readList(send, { ...request, parameters: { ...here, ...filter }, signal, max })
    return records.map(recordOf).toSorted((a, b) => b.createdAt - a.createdAt || b.id - a.id)
  }
  const createOnce = async (options: NewDeployment, signal: AbortSignal): Promise<DeploymentRecord> => {
    const { transient, production, description, ...fields } = options
    const { body } = await send({
      operation: `creating a deployment record of '${options.environment}'`,
      permission: WRITE,
      route: `POST ${ROUTE}`,
      parameters: {
        ...here,
        ...fields,
        description: short(description),
        auto_merge: false,
        required_contexts: [],
        transient_environment: transient,
        production_environment: production,
      },
      schema: deploymentSchema,
      signal,
    })
    return recordOf(body)
  }
  return {
    createDeployment: async (options, signal) => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await createOnce(options, signal)
        } catch (error) {
          if (!(error instanceof GithubFailure) || !error.request.ambiguous || signal.aborted) throw error
          const { ref, environment, task, payload } = options
          const records = await listDeployments({ environment, task, max: 20 }, signal).catch(() => {
            throw error
          })
          const made = records.find((record) => record.ref === ref && isDeepStrictEqual(record.payload, payload))
          if (made !== undefined) return made
          if (attempt >= CREATE_ATTEMPTS) throw error
        }
      }
    },
    createDeploymentStatus: async ({ deploymentId, state, description, environmentUrl, logUrl, autoInactive }, signal) => {
      await send({
        operation: `setting the deployment record ${deploymentId} to ${state}`,
        permission: WRITE,
        route: `POST ${ROUTE}/{deployment_id}/statuses`,
        parameters: {
          ...here,
          deployment_id: deploymentId,
          state,
          description: short(description),
          ...(environmentUrl === undefined ? {} : { environment_url: environmentUrl }),
          ...(logUrl === undefined ? {} : { log_url: logUrl }),
          ...(autoInactive === undefined ? {} : { auto_inactive: autoInactive }),
        },
        schema: statusSchema,
        // The same status twice says the same.
        idempotent: true,
        signal,
      })
    },
    listDeployments,
    listDeploymentStatuses: async (deploymentId, signal) => {
      const statuses = await readList(send, {
        operation: `listing the statuses of the deployment record ${deploymentId}`,
        permission: READ,
        route: `GET ${ROUTE}/{deployment_id}/statuses`,
        parameters: { ...here, deployment_id: deploymentId },
        schema: statusSchema,
        signal,
        max: Infinity,
      })
      return statuses
        .toSorted((a, b) => b.created_at - a.created_at || b.id - a.id)
        .map(({ state, description, created_at: createdAt }) => ({
          state: state as DeploymentState,
          description: description ?? '',
          createdAt,
        }))
    },
  }
}

/** At most as long as GitHub takes, on one line. */
function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  if (line.length <= DESCRIPTION_MAX) return line
  const cut = line.slice(0, DESCRIPTION_MAX - 1)
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`
}

function recordOf(answer: z.infer<typeof deploymentSchema>): DeploymentRecord {
  const { id, environment, sha, ref, task, created_at: createdAt } = answer
  return { id, environment, sha, ref, task, payload: parsed(answer.payload), createdAt }
}

/** GitHub gives a payload as it was sent, or as JSON text. */
function parsed(payload: unknown): unknown {
  if (typeof payload !== 'string') return payload
  try {
    return JSON.parse(payload)
  } catch {
    return payload
  }
}
