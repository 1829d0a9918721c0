create type state as enum ('new', 'open', 'waiting', 'closed', 'deleted');
create type channel as enum ('web', 'shop', 'phone');
create table wide(
    id bigint primary key,
    account_id bigint not null, parent_id bigint, batch int not null, position smallint not null,
    reference uuid not null, session_id uuid,
    state state not null, previous_state state, channel channel not null,
    title text not null, description text, email text, first_name varchar(60), last_name varchar(60),
    company varchar(80), street text, city varchar(60), country char(2), phone varchar(30),
    url text, note text, code char(12) not null, sku varchar(20),
    amount numeric(12,2) not null, tax numeric(12,2), discount numeric(5,2), rate numeric, weight double precision,
    quantity int not null, score real,
    active boolean not null, verified boolean,
    created_at timestamptz not null, updated_at timestamptz, shipped_at timestamptz, due date,
    attributes jsonb not null, settings jsonb,
    tags text[]
);
