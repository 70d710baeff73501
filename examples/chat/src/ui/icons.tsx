/** Icons as strokes on a 24 grid; always beside a text or inside a labelled button. */

const paths = {
  plus: 'M12 5v14M5 12h14',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4',
  close: 'M6 6l12 12M18 6L6 18',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  copy: 'M9 9h10v11H9zM15 9V4H5v11h4',
  chevron: 'M9 6l6 6-6 6',
  down: 'M6 9l6 6 6-6',
  arrowUp: 'M12 19V5M6 11l6-6 6 6',
  arrowDown: 'M12 5v14M6 13l6 6 6-6',
  stop: 'M8 8h8v8H8z',
  clip: 'M20 11.5l-8.2 8.2a5 5 0 0 1-7-7l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4l7.7-7.6',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM9 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z',
  memory: 'M7 4.5h10v15l-5-3.6-5 3.6z',
  sidebar: 'M4 5h16v14H4zM9.5 5v14',
  window: 'M4 8h11v11H4zM9 8V5h11v11h-5',
  edit: 'M5 19h3.5L19 8.5 15.5 5 5 15.5zM13 7.5l3.5 3.5',
  trash: 'M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13M10.5 11v5.5M13.5 11v5.5',
  file: 'M6 3.5h8l4 4v13H6zM14 3.5v4h4',
  warning: 'M12 4l9 16H3zM12 10v4.5M12 17.2v.1',
  retry: 'M19.5 12a7.5 7.5 0 1 1-2.2-5.3L20 9.3M20 4.5v4.8h-4.8',
  info: 'M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16ZM12 11v5M12 8v.1',
  skip: 'M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16ZM6.5 6.5l11 11',
  failed: 'M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16ZM9.3 9.3l5.4 5.4M14.7 9.3l-5.4 5.4',
  pause: 'M9 6v12M15 6v12',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, className = '' }: { name: IconName; className?: string }) {
  return (
    <svg
      className={`icon ${className}`}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  )
}
