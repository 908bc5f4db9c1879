/** Header names of specification 5, as sent; they compare case-insensitively. */
export const API_KEY_HEADER = 'X-Api-Key'
export const TENANT_ID_HEADER = 'X-Tenant-Id'
