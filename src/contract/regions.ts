import { z } from 'zod'

/** The hosted service's addresses by region (specification 1.6; the third and fourth as observed). */
export const REGIONS = {
  us: { controlPlaneUrl: 'https://api.host.langchain.com', apiUrl: 'https://api.smith.langchain.com' },
  eu: { controlPlaneUrl: 'https://eu.api.host.langchain.com', apiUrl: 'https://eu.api.smith.langchain.com' },
  apac: { controlPlaneUrl: 'https://apac.api.host.langchain.com', apiUrl: 'https://apac.api.smith.langchain.com' },
  aws: { controlPlaneUrl: 'https://aws.api.host.langchain.com', apiUrl: 'https://aws.api.smith.langchain.com' },
} as const

export const REGION_NAMES = ['us', 'eu', 'apac', 'aws'] as const satisfies readonly (keyof typeof REGIONS)[]
export const regionSchema = z.enum(REGION_NAMES)
export type Region = z.infer<typeof regionSchema>
