create type status as enum ('active','blocked','closed');
create table customers(id bigint generated always as identity primary key, email text unique not null, name varchar(80) not null, created_at timestamptz not null default now(), status status not null default 'active', credit numeric(10,2) check (credit >= 0), meta jsonb);
create table products(id int primary key, sku text not null unique, title text not null, price numeric(8,2) not null check (price > 0), tags text[]);
create table orders(id bigint generated always as identity primary key, customer_id bigint not null references customers, placed_at timestamptz not null default now(), shipped_at timestamptz check (shipped_at is null or shipped_at >= placed_at), status status not null);
create index on orders(customer_id);
create index on orders(placed_at);
create table order_items(order_id bigint references orders, line smallint, product_id int not null references products, quantity int not null check (quantity between 1 and 100), price numeric(8,2) not null, primary key(order_id,line));
