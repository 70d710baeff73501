/** How figures are written for people. */

/** 20 MB, 1.5 KB. */
export function bytes(count: number): string {
  if (count < 1024) return `${count} B`
  if (count < 1024 * 1024) return `${short(count / 1024)} KB`
  return `${short(count / 1024 / 1024)} MB`
}

/** 950, 1.2k, 128k, 1M: token counts. */
export function tokens(count: number): string {
  if (count < 1000) return String(count)
  if (count < 999_500) return `${short(count / 1000)}k`
  return `${short(count / 1_000_000)}M`
}

/** One decimal below ten, none above, never a trailing zero. */
function short(value: number): string {
  return value < 9.95 ? String(Number(value.toFixed(1))) : String(Math.round(value))
}

/** Which heading of the sidebar a time belongs under. */
export type Period = 'today' | 'yesterday' | 'week' | 'month' | { year: number; month: number }

/** By calendar days of the local time zone, not by hours that have passed. */
export function periodOf(time: number, now: number): Period {
  const midnight = new Date(now)
  midnight.setHours(0, 0, 0, 0)
  const daysAgo = (days: number) => {
    const day = new Date(midnight)
    day.setDate(day.getDate() - days)
    return day.getTime()
  }
  if (time >= midnight.getTime()) return 'today'
  if (time >= daysAgo(1)) return 'yesterday'
  if (time >= daysAgo(7)) return 'week'
  if (time >= daysAgo(30)) return 'month'
  const date = new Date(time)
  return { year: date.getFullYear(), month: date.getMonth() }
}
