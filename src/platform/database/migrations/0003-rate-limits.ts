import { type Kysely, sql } from 'kysely'

/**
 * Counters that several processes share. A window is counted in slices; the function decides and counts in one call, under a lock of the
 * key and by the database's clock, so that any number of processes together never let in more than the limit.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Unlogged: after a crash of the database the counts begin anew, which costs nobody anything but a moment's leniency.
  await sql`
    create unlogged table rate_limit_slices (
      key text not null,
      slice bigint not null,
      count integer not null,
      expires_at timestamptz not null,
      primary key (key, slice)
    )`.execute(db)
  await sql`create index rate_limit_slices_expired on rate_limit_slices (expires_at)`.execute(db)
  await sql`
    create function take_rate_limit(the_key text, the_limit integer, window_ms double precision, slices integer)
    returns table (admitted boolean, remaining integer, retry_after_ms double precision)
    language plpgsql as $$
    declare
      slice_ms double precision := window_ms / slices;
      now_ms double precision;
      this_slice bigint;
      oldest bigint;
      used integer;
    begin
      perform pg_advisory_xact_lock(hashtextextended(the_key, 0));
      now_ms := extract(epoch from clock_timestamp()) * 1000;
      this_slice := floor(now_ms / slice_ms);
      delete from rate_limit_slices where key = the_key and slice < this_slice - slices;
      select coalesce(sum(count), 0), min(slice) into used, oldest from rate_limit_slices where key = the_key;
      if used >= the_limit then
        return query select false, 0, greatest(1, (oldest + slices + 1) * slice_ms - now_ms);
        return;
      end if;
      insert into rate_limit_slices as s (key, slice, count, expires_at)
        values (the_key, this_slice, 1, clock_timestamp() + make_interval(secs => window_ms * 2 / 1000))
        on conflict (key, slice) do update set count = s.count + 1;
      return query select true, the_limit - used - 1,
        case when the_limit - used - 1 > 0 then 0 else greatest(1, (coalesce(oldest, this_slice) + slices + 1) * slice_ms - now_ms) end;
    end $$`.execute(db)
}
